import type { ExportedEvent } from './columns.ts'

/** The content that a file must have. It is compared with what can be read from it. */
interface Written {
  events: number
  /** Of the events in their order, in hex. */
  sha256: string
}

/** A format of exported files. Memory holds a part of a file. */
export interface Format {
  /** The end of the names of its files. */
  extension: string
  /** Writes a new file. Throws if it exists. */
  write(path: string, pages: AsyncIterable<ExportedEvent[]>): Promise<Written>
  /** Reads a file back. Throws if it is damaged. */
  read(path: string): Promise<Written>
}
