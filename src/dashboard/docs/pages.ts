import { gunzipSync } from 'node:zlib'
import { once } from '../../base/functions.ts'
import { DOCS } from '../built.ts'

export interface Heading {
  level: number
  id: string
  text: string
}

/** The text below one heading, as plain text for the search. */
export interface Section {
  /** The id of the heading; empty for the start of the page. */
  anchor: string
  title: string
  text: string
}

/** A file of docs/, rendered at build time. */
export interface DocsPage {
  /** The last segment of its path; empty for the index. */
  name: string
  title: string
  /** The first paragraph, as plain text. */
  lead: string
  html: string
  /** Every heading but the title. */
  headings: Heading[]
  sections: Section[]
}

/** A heading of docs/README.md, with the names of the pages below it. */
export interface PageGroup {
  title: string
  /** 2, or 3 for a group within the one before. */
  level: number
  names: string[]
}

/** The documentation as the build leaves it. */
export interface BuiltDocs {
  index: DocsPage
  pages: DocsPage[]
  /** The map of the pages, by their names. */
  groups: PageGroup[]
}

/** Reads the documentation of this build. */
export const readDocs = once(
  () => JSON.parse(String(gunzipSync(Buffer.from(DOCS, 'base64')))) as BuiltDocs,
)
