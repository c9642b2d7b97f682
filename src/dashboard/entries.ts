// The entries of the browser's code. The build of the pages and the SBOM read them.

/** The bundles: the application, and the documentation, which does not need it. */
export const BUNDLES = [
  ['main.tsx', 'theme-early.ts', 'style/app.css'],
  ['docs/docs.ts', 'style/docs.css'],
]
/** The service worker. */
export const WORKER = 'sw.ts'
/** The package of the script of /swagger, which its publisher has bundled. */
export const REFERENCE_PACKAGE = 'node_modules/@scalar/api-reference'
