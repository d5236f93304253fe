import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createParquetDestination } from '../../../core/destinations/files/parquet.ts'
import { createWorkplace, noise, type Workplace } from '../../core/destinations/publication.ts'
import { publishInChild } from './children.ts'

describe('an export in Parquet files', () => {
  let workplace: Workplace
  beforeEach(async () => {
    workplace = await createWorkplace()
  })
  afterEach(() => workplace.close())

  test(
    'on a full disk ends with a sentence, shows nothing and leaves nothing behind',
    { tags: ['long'] },
    async () => {
      const publication = await workplace.toPublication('customers', noise(6_000_000))
      const { said } = await publishInChild(
        workplace,
        { to: { parquet: true }, publication },
        { fileBlocks: 2_000 },
      )
      expect(said).toMatch(
        /^UnwritableError: Can't write to .*parquet\/customers\/.*: the file would be larger/,
      )
      expect(await readdir(join(workplace.exports, 'parquet', 'customers'))).toEqual([])
    },
  )

  test('that was cut short by SIGKILL is not visible, and the next one removes what it left', async () => {
    const publication = await workplace.toPublication('customers', [['{"id":"1"}']])
    const { signal } = await publishInChild(workplace, {
      to: { parquet: true },
      publication,
      killAt: 'counted',
    })
    expect(signal).toBe('SIGKILL')
    const folder = join(workplace.exports, 'parquet', 'customers')
    expect((await readdir(folder)).filter((name) => !name.startsWith('.'))).toEqual([])
    await createParquetDestination().publish(publication)
    expect((await readdir(folder)).toSorted()).toEqual([
      'export-customers-2026-03-01',
      'latest',
      'latest-proven',
    ])
  })
})
