import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createCsvDestination } from '../../../core/destinations/files/csv.ts'
import { createParquetDestination } from '../../../core/destinations/files/parquet.ts'
import { createWorkplace, noise, start, type Workplace } from '../../core/destinations/publication.ts'
import { publishInChild } from './children.ts'

describe.each([
  { to: 'csv', below: 'customers', destination: createCsvDestination() },
  { to: 'parquet', below: 'parquet/customers', destination: createParquetDestination() },
] as const)('an export to $to', ({ to, below, destination }) => {
  let workplace: Workplace
  beforeEach(async () => {
    workplace = await createWorkplace()
  })
  afterEach(() => workplace.close())

  // A limit on a file's size stands for the disk's: the write fails half-way in the same manner (EFBIG).
  test('on a full disk ends with a sentence, shows nothing and leaves nothing behind', async () => {
    const publication = await workplace.toPublication('customers', noise(6_000_000))
    const { said } = await publishInChild(workplace, { to, publication }, { fileBlocks: 2_000 })
    expect(said).toMatch(
      /^UnwritableError: Can't write to .*\/customers\/.*: the file would be larger.*EFBIG/,
    )
    expect(await readdir(join(workplace.exports, below))).toEqual([])
  })

  test('that was cut short by SIGKILL is not visible, and the next one removes what it left', async () => {
    const publication = await workplace.toPublication('customers', [['{"id":"1"}']])
    const { signal } = await publishInChild(workplace, { to, publication, killAt: 'counted' })
    expect(signal).toBe('SIGKILL')
    const folder = join(workplace.exports, below)
    expect((await readdir(folder)).filter((name) => !name.startsWith('.'))).toEqual([])
    await destination.publish(publication)
    expect((await readdir(folder)).toSorted()).toEqual([
      `${start}-export-customers-2026-03-01`,
      'latest',
      'latest-proven',
    ])
  })
})
