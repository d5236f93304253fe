import type { Publication } from '../destination.ts'
import { checkRows } from '../parts/check-parts.ts'
import { readParts } from '../parts/read-parts.ts'
import type { WarehouseSession } from './session.ts'
import { literal, quote } from '../sql.ts'
import { rejectedTable } from './warehouse-owner.ts'

/** Lines per statement. */
const batch = 200

/**
 * Stores rejected items beside the records and returns their number.
 * @throws {RowsMissingError}
 */
export async function keepRejected(options: {
  session: WarehouseSession
  publication: Publication
  where: string
}): Promise<number> {
  const { session, publication, where } = options
  const { rejected = [], run, resource, signal } = publication
  const target = `${quote(session.schema)}.${quote(rejectedTable)}`
  let rows = 0
  let values: string[] = []
  const flush = async () => {
    if (values.length > 0) await session.run(`insert into ${target} values ${values.join(', ')}`)
    values = []
  }
  for await (const line of toLines(readParts(rejected, { signal }))) {
    rows++
    values.push(`(${[run, resource, line].map(literal).join(', ')})`)
    if (values.length === batch) await flush()
  }
  await flush()
  checkRows(rejected, { table: 'rejected', rows, where })
  return rows
}

/** Splits at `\n` only: JSON may contain characters that others treat as line ends (U+2028). */
async function* toLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}
