import { readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createWorld, folderOf, manifestOf, rowsOf, runExport, startTestWorker } from './world.ts'

const incremental = { resources: ['customers' as const], mode: 'incremental' as const, lookbackSeconds: 0 }

describe('an incremental export', () => {
  test('reads what changed since the last proven one, in no more than 2 % of the pages plus three', async () => {
    const world = await createWorld({ counts: { customers: 2_000 } })
    await startTestWorker(world, { BILLING_READ_LAG_SECONDS: '0' })
    const first = await runExport(world, incremental)
    expect(await manifestOf(first, 'customers')).toMatchObject({
      mode: 'full',
      verdict: 'proven',
      records: 2_000,
    })
    const latest = await readlink(join(world.dataDir, 'exports/customers/latest'))

    // The service writes its time in whole seconds: a change belongs to the next run only after that second.
    const { control } = world.sandbox
    const served = Date.parse(String((await manifestOf(first, 'customers')).completeThrough))
    while (Date.now() < served + 2_000) await new Promise((resolve) => setTimeout(resolve, 50))
    const changed = control.ids({ resource: 'customers' }).slice(100, 160)
    for (const id of changed) control.update({ resource: 'customers', id, fields: { name: 'changed' } })

    const second = await runExport(world, incremental)
    const manifest = await manifestOf(second, 'customers')
    expect(manifest).toMatchObject({ mode: 'incremental', verdict: 'proven' })
    // As far back as the newest `updated` that the list had: nothing was changed since.
    const newest = Date.parse(String((await manifestOf(first, 'customers')).newestUpdated))
    expect(Date.parse(String(manifest.changedSince))).toBe(Math.min(served, newest))
    expect(manifest['requests']).toBeLessThanOrEqual(20 * 0.02 + 3)
    // Besides them only the record of the watermark itself may come again.
    const ids = (await rowsOf(second, 'customers')).map(({ id }) => id)
    expect(ids).toEqual(expect.arrayContaining(changed.map(String)))
    expect(ids.length).toBeLessThanOrEqual(changed.length + 1)
    expect(folderOf(second, 'customers')).toMatch(/-incremental$/)
    expect(await readlink(join(world.dataDir, 'exports/customers/latest'))).toBe(latest)
  })
})
