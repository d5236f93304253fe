import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { PublishedFile } from '../manifest/manifest.ts'

/** Checks a file's rows while its bytes are read. */
export interface RowCheck {
  add(bytes: Buffer): void
  /** Returns the number of rows and the problems found, one sentence each. */
  end(): { rows: number; problems: string[] }
}

/** Checks a file against its entry in the manifest. */
export async function checkFile(options: {
  open: (name: string) => Promise<Readable | undefined>
  file: PublishedFile
  header: string
  check: RowCheck
}): Promise<string[]> {
  const { open, file, check } = options
  const header = Buffer.from(options.header)
  const hash = createHash('sha256')
  let start = Buffer.alloc(0)
  let bytes = 0
  const stream = await open(file.path)
  if (stream === undefined) return [`${file.path} is missing.`]
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    if (start.length < header.length)
      start = Buffer.concat([start, chunk.subarray(0, header.length - start.length)])
    hash.update(chunk)
    check.add(chunk)
    bytes += chunk.length
  }
  const { rows, problems } = check.end()
  const differences = [
    ...(bytes === file.bytes ? [] : [`has ${bytes} bytes, and the manifest says ${file.bytes}.`]),
    ...(hash.digest('hex') === file.sha256
      ? []
      : ['is not as it was published: its SHA-256 sum is another.']),
    ...(start.equals(header) ? [] : ['does not begin with the columns that the manifest names.']),
    ...(rows === file.rows ? [] : [`has ${rows} rows, and the manifest says ${file.rows}.`]),
    ...problems,
  ]
  return differences.map((difference) => `${file.path} ${difference}`)
}
