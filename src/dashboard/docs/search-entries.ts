import type { SearchEntry } from '../app/docs/search-entries.ts'
import { listOperations, type Document } from './document.ts'
import { toAnchor } from './html.ts'
import { REFERENCE_PATH } from './layout.ts'
import type { BuiltDocs } from './pages.ts'

interface Documented {
  docs: BuiltDocs
  /** The OpenAPI documents of /v1 and /api. */
  document: Document
  management: Document
}

/** Returns the entries of the search: sections of the guides, operations and schemas. */
export function listSearchEntries({ docs, document, management }: Documented): SearchEntry[] {
  return [
    ...docs.pages.flatMap(({ name, title, sections }) =>
      sections.map(section => ({
        url: `/docs/${name}${section.anchor && `#${section.anchor}`}`,
        page: title,
        title: section.title,
        text: section.text,
      })),
    ),
    ...listOperationEntries(document, 'API reference'),
    ...Object.entries(document.components?.schemas ?? {}).map(([name, schema]) => ({
      url: `${REFERENCE_PATH}#${toAnchor('schema', name)}`,
      page: 'API reference',
      title: name,
      text: [schema.description, ...Object.keys(schema.properties ?? {})].join(' '),
    })),
    ...listOperationEntries(management, 'Management API'),
  ]
}

function listOperationEntries(document: Document, page: string): SearchEntry[] {
  return listOperations(document).map(
    ({ operationId, summary, method, path, description = '' }) => ({
      url: `${REFERENCE_PATH}#${toAnchor(operationId)}`,
      page,
      title: summary,
      text: `${method} ${path} ${page === 'API reference' ? description : ''}`.trim(),
    }),
  )
}
