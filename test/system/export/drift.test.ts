import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import type { ExportDocument } from '../../../core/exports/report.ts'
import { askDuckDb } from '../../core/destinations/duckdb-file.ts'
import { callCommand } from '../command-line/call-command.ts'
import { openChannel } from '../notify/receiver.ts'
import { createWorld, startTestWorker, until } from './world.ts'

test(
  'what the service sends otherwise than the schema has it is told everywhere, and a proven export stays proven',
  { tags: ['long'] },
  async () => {
    const receiver = await openChannel()
    const world = await createWorld({ counts: { subscriptions: 30 } })
    await startTestWorker(world, { NOTIFY_URL: receiver.url })
    const words = ['export', 'subscriptions', '--to', 'csv,duckdb,parquet']
    const exported = async () => {
      const { code, stdout, stderr } = await callCommand(world, [...words, '--json'])
      expect({ code, stderr }).toMatchObject({ code: 0 })
      return (JSON.parse(stdout) as ExportDocument).exports
    }
    const warningsOf = async () => (await exported()).map(({ warnings }) => warnings)
    // The sandbox has a field that is not documented. It is told once.
    const unknown = ['The service sends new fields, kept in _extra: subscriptions.billing_engine 30.']
    expect(await warningsOf()).toEqual([unknown, unknown, unknown])
    expect(await warningsOf()).toEqual([[], [], []])

    const drift = (field: string, value: unknown, records = 1) =>
      world.sandbox.control.setFaults({ faults: [{ kind: 'wrongType', field, value, records }] })
    drift('cancelled', '25/03/2026 12:00')
    const [misfit] = await exported()
    const sentence =
      '1 value does not fit its column: subscriptions.cancelled 1 (text like 99/99/9999 99:99). It is empty there, and kept in _extra.'
    expect(misfit).toMatchObject({ verdict: 'proven', warnings: [sentence] })
    expect(JSON.parse(await readFile(misfit?.manifest ?? '', 'utf8'))).toMatchObject({ warnings: [sentence] })
    const [row] =
      (await askDuckDb(
        `${world.dataDir}/warehouse.duckdb`,
        'select warnings from _exports order by published_at desc limit 1',
      )) ?? []
    expect(JSON.parse(row?.['warnings'] ?? '')).toEqual([sentence])
    await until(() => receiver.received.length > 1)
    expect(receiver.received[1]?.body).toMatchObject({
      event: { kind: 'attention' },
      text: expect.stringContaining('subscriptions.cancelled 1 (text like 99/99/9999 99:99)'),
    })

    drift('lines', [{ plan: 'p', quantity: 1, colour: 'red' }, 'none'])
    const shown = await callCommand(world, words)
    expect(shown).toMatchObject({ code: 0 })
    expect(shown.stdout).toContain('subscriptions.lines 1 (text like aaaa)')
    expect(shown.stdout).toContain('new fields, kept in _extra: subscriptions.lines.colour 1.')
    expect(shown.stdout).not.toContain('red')

    drift('note', undefined, 5_000)
    const gone = ['The service no longer sends fields that an earlier export has: subscriptions.note.']
    expect(await warningsOf()).toEqual([gone, gone, gone])
    expect(await warningsOf()).toEqual([gone, gone, gone])

    // That the few records which changed lack a field says nothing of the list.
    world.sandbox.control.drift({ resource: 'subscriptions', updates: 1 })
    words.push('--mode', 'incremental')
    const changed = await exported()
    expect(changed[0]?.records).toBeGreaterThan(0)
    expect(changed.map(({ warnings }) => warnings)).toEqual([[], [], []])
  },
)
