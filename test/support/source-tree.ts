import { parse } from '@babel/parser'

/** Returns the syntax tree of a TypeScript file, as Babel describes it. */
export function parseSource(name: string, text: string): unknown {
  const hasTags = name.endsWith('.tsx')
  return parse(text, {
    sourceType: 'module',
    plugins: ['typescript', ...(hasTags ? (['jsx'] as const) : [])],
  })
}
