// The entries of the browser's code. The build of the pages and the SBOM read them.

/** The bundles: the application, the documentation, which does not need it, and their styles. */
export const BUNDLES = [
  ['main.tsx'],
  ['docs/docs.ts'],
  ['style/app.css', 'style/pages.css', 'style/docs.css', 'style/scalar.css'],
  // Classic scripts cannot import others, so each is a bundle of its own.
  ['early.ts'],
  ['theme-early.ts'],
]
/** The service worker. */
export const WORKER = 'sw.ts'
/** The package of the script of /swagger, which its publisher has bundled. */
export const REFERENCE_PACKAGE = 'node_modules/@scalar/api-reference'
