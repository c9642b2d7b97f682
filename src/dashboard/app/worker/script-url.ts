/** Trusted Types, which allow only a policy to name the script of a worker. */
interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(): string },
  ): { createScriptURL(path: string): string }
}
const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes }

/** Returns the URL of a worker's script by a policy of its own, which the page's headers name. */
export function toScriptUrl(policy: string, path: string): string {
  const made = trustedTypes?.createPolicy(policy, { createScriptURL: () => path })
  return made?.createScriptURL(path) ?? path
}
