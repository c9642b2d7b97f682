/** Returns every operation of an OpenAPI document, with its path and its method in upper case. */
export function listOperations<Operation = Record<string, any>>({
  paths,
}: {
  paths: Record<string, Record<string, Operation>>
}): (Operation & { path: string; method: string })[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      ...operation,
      path,
      method: method.toUpperCase(),
    })),
  )
}
