/** Returns the processor time that this process takes for `work`, in milliseconds. */
export async function measureProcessor(work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}
