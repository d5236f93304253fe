import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { WorkflowClient } from '@temporalio/client'
import { expect, onTestFinished, test, vi } from 'vitest'
import { uploadPrefix } from '../../../core/imports/plan.ts'
import { callCommand } from '../command-line/call-command.ts'
import { connectTemporal, createWorld, startTestWorker, until, type World } from '../export/world.ts'
import { quick, reset, retentionsCsv, startImport } from './world.ts'

const counts = { customers: 1, subscriptions: 0, plans: 0, retentions: 0, orders: 0 }
const day = 86_400

const fileOf = (name: string) => `imports/${uploadPrefix}${name}/file/rows.csv`

/** An upload as a command leaves it, so many days ago. */
async function upload(world: World, name: string, { days }: { days: number }) {
  const file = join(world.dataDir, fileOf(name))
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, retentionsCsv(2, { from: 10 * name.length }))
  const at = Date.now() / 1000 - days * day
  await utimes(file, at, at)
}

const uploadsIn = async ({ dataDir }: World) =>
  (await readdir(join(dataDir, 'imports'))).filter((name) => name.startsWith(uploadPrefix)).toSorted()

test(
  'connector prune removes old uploads, but none that a run names that may still begin, late or after a Reset',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts })
    const client = await connectTemporal()
    const worker = await startTestWorker(world)
    const input = { kind: 'retentions', ...quick } as const
    const refused = await startImport({ client, world, input: { ...input, file: fileOf('refused') } })
    await expect(refused.result()).rejects.toMatchObject({
      cause: { message: expect.stringContaining('There is no file') },
    })
    await worker.stop()
    const late = await startImport({ client, world, input: { ...input, file: fileOf('late') } })
    for (const name of ['refused', 'late', 'unnamed']) await upload(world, name, { days: 40 })
    await upload(world, 'new', { days: 20 })
    const query = `TaskQueue = '${world.taskQueue}'`
    await until(async () => (await client.workflow.count(query)).count === 2)

    const prune = (...words: string[]) => callCommand(world, ['prune', '--keep-days', '30', ...words])
    const all = ['late', 'new', 'refused', 'unnamed'].map((name) => `${uploadPrefix}${name}`)
    const away = { env: { TEMPORAL_ADDRESS: '127.0.0.1:1' } }
    expect(await callCommand(world, ['prune', '--keep-days', '30', '--yes'], away)).toMatchObject({
      code: 0,
      stdout: 'Nothing to remove.\n',
      stderr: expect.stringContaining('Not removed: 3 uploads of imports'),
    })
    expect(await prune('--dry-run')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Would remove 0 exports and 1 upload, '),
    })
    expect(await uploadsIn(world)).toEqual(all)
    expect(await prune('--yes')).toMatchObject({ code: 0, stderr: '' })
    expect(await uploadsIn(world)).toEqual(all.slice(0, -1))

    await startTestWorker(world)
    expect(await late.result()).toMatchObject({ verdict: 'proven' })
    await reset({ client, workflowId: refused.workflowId })
    expect(await client.workflow.getHandle(refused.workflowId).result()).toMatchObject({ verdict: 'proven' })
    // Both have taken theirs over.
    expect(await uploadsIn(world)).toEqual([`${uploadPrefix}new`])
  },
)

test('an import whose start took effect although the command heard nothing of it finds the files of that command', async () => {
  const world = await createWorld({ counts })
  const client = await connectTemporal()
  await startTestWorker(world)
  const original = client.workflow.start.bind(client.workflow)
  const start = vi.spyOn(WorkflowClient.prototype, 'start')
  onTestFinished(() => start.mockRestore())
  start.mockImplementationOnce(async (type, options) => {
    start.mockRestore()
    // It begins after the command has ended.
    await original(type, { ...options, startDelay: '1s' })
    throw new Error('the reply was lost')
  })
  const file = join(world.dataDir, 'rows.csv')
  await writeFile(file, retentionsCsv(2))
  const failed = await callCommand(world, ['import', 'retentions', file, '--detach'])
  expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('the reply was lost') })
  const query = `TaskQueue = '${world.taskQueue}'`
  const runs = () => Array.fromAsync(client.workflow.list({ query }))
  await until(async () => (await runs()).length === 1)
  const [{ workflowId } = { workflowId: '' }] = await runs()
  expect(await client.workflow.getHandle(workflowId).result()).toMatchObject({ verdict: 'proven' })
  expect(await uploadsIn(world)).toEqual([])
})
