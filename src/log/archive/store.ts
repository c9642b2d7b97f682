/** A place for archive files: a folder or a bucket. Names are relative paths with slashes. */
export interface ArchiveStore {
  /** The place, for messages. */
  readonly location: string
  /** Starts to write a file. Nobody sees it before `finish`. */
  create(name: string): Promise<ArchiveUpload>
  /** Opens a file to read it. Undefined if it does not exist. */
  open(name: string): Promise<ArchiveObject | undefined>
  /** Deletes a file and what an interrupted upload left of it. A missing file is no error. */
  remove(name: string): Promise<void>
}

/** A file that is being written. */
export interface ArchiveUpload {
  write(bytes: Uint8Array): Promise<void>
  /** Resolves when the file is durable and has its name. */
  finish(): Promise<void>
  /** Gives up. Rejects never. */
  abort(): Promise<void>
}

/** A file that is being read. */
export interface ArchiveObject {
  readonly byteLength: number
  /** Returns the bytes from `start` up to, and without, `end`. Throws if there are fewer. */
  read(start: number, end: number): Promise<Uint8Array>
  close(): Promise<void>
}
