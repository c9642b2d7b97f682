/** Resolves when the page has its first content, which nothing else may delay. */
export const { promise: content, resolve: showContent } = Promise.withResolvers<void>()
