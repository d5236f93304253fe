import { describe, expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { connectTemporal, createWorld, startRun, startTestWorker } from '../export/world.ts'
import { quick as quickRecovery, startRecovery, well } from '../recovery/world.ts'

const counts = { customers: 5, subscriptions: 0, plans: 3, retentions: 0, orders: 0 }

describe('a workflow id that was used twice means its newest run', () => {
  test('for exports, in report, status and publish', { tags: ['long'] }, async () => {
    const world = await createWorld({ counts })
    await startTestWorker(world)
    const client = await connectTemporal()
    const name = `typed-${world.workspace}`
    await (await startRun({ client, world, name, input: { resources: ['plans'] } })).result()
    await (await startRun({ client, world, name, input: { resources: ['customers'] } })).result()
    const tell = async (...words: string[]) => {
      const { code, stdout, stderr } = await callCommand(world, [...words, '--json'])
      return { code, stderr, document: JSON.parse(stdout) as { run: string; exports: object[] } }
    }
    const [newest, first, second, status] = await Promise.all([
      tell('run', 'report', name),
      tell('run', 'report', `${name}.1`),
      tell('run', 'report', `${name}.2`),
      tell('run', 'show', name),
    ])
    expect(newest).toMatchObject({
      code: 0,
      document: { run: `${name}.2`, exports: [{ resource: 'customers' }] },
    })
    expect(newest.stderr).toContain(`${name}.2 is the newest run of ${name}; ${name}.1 names the first.`)
    expect(first.document).toMatchObject({ run: name, exports: [{ resource: 'plans' }] })
    expect(second).toMatchObject({ document: newest.document, stderr: '' })
    expect(status.document).toMatchObject({ run: `${name}.2`, status: 'completed' })
    const published = await tell('run', 'publish', name, '--to', 'duckdb')
    expect(published).toMatchObject({
      code: 0,
      document: { run: `${name}.2`, exports: [{ resource: 'customers', destination: 'duckdb' }] },
    })
  })

  test('for recoveries, whose same command is the next run under its id', async () => {
    const world = await createWorld(well)
    await startTestWorker(world, { BILLING_SETTLE_SECONDS: '0.05' })
    const client = await connectTemporal()
    const name = `recover-typed-${world.workspace}`
    const input = { ...quickRecovery, dryRun: true }
    for (const _ of [1, 2]) await (await startRecovery({ client, world, input, name })).result()
    const tell = (...words: string[]) => callCommand(world, words)
    const [report, status, named, earlier] = await Promise.all([
      tell('run', 'report', name),
      tell('run', 'show', name),
      tell('run', 'show', `${name}.2`),
      tell('run', 'show', `${name}.3`),
    ])
    expect(report).toMatchObject({ code: 0, stdout: expect.stringContaining(`${name}.2: `) })
    expect(report.stderr).toContain(`${name}.2 is the newest run`)
    expect(status.stdout).toContain(`${name}.2 is completed`)
    expect(named).toMatchObject({ code: 0, stdout: status.stdout })
    expect(earlier).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`The newest run of ${name} is ${name}.2`),
    })
  })
})
