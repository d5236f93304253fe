import { Client, Connection } from '@temporalio/client'
import { chmod, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { ExportInput } from '../../../core/exports/input.ts'
import type { ImportInput } from '../../../core/imports/input.ts'
import { findServer } from '../../../scripts/dev-server/server-record.ts'
import { password, startPostgres } from '../destinations/postgres-server.ts'
import { createWorld, local, startCommand, until, type World } from '../export/world.ts'
import { addonsCsv, ordersCsv, putFile, quick, retentionsCsv, startImport } from '../import/world.ts'

const token = 'token-that-nobody-may-see-4f1c'
const renewed = 'token-that-nobody-may-see-9a07'
const hashKey = 'hash-key-that-nobody-may-see-77b2'

/** What of the customers tells who they are. */
function personalOf(world: World): string[] {
  const records = [...world.sandbox.control.records({ resource: 'customers' })].map(
    (text) => JSON.parse(text) as Record<string, unknown> & { contacts: Record<string, unknown>[] },
  )
  const people = records.flatMap((record) => [record, ...record.contacts])
  const texts = people.flatMap(({ name, email, tax_id, phone }) => [name, email, tax_id, phone])
  const known = texts.filter((text): text is string => typeof text === 'string' && text.length >= 8)
  return [...new Set(['@ejemplo.cl', ...known])]
}

/** Every file under a folder for which `isWanted` says so, with its bytes. */
async function filesUnder(folder: string, isWanted: (path: string) => boolean) {
  const names = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = names
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter(isWanted)
  return Promise.all(paths.map(async (path) => ({ what: path, bytes: await readFile(path) })))
}

const found = (texts: { what: string; bytes: Buffer }[], needles: readonly string[]) =>
  texts.flatMap(({ what, bytes }) =>
    needles.filter((needle) => bytes.includes(needle)).map((needle) => `${needle} in ${what}`),
  )

test(
  'no token, password or personal data gets into Temporal, logs, reports or metrics, whatever is run',
  { tags: ['long'] },
  async () => {
    const postgres = await startPostgres()
    onTestFinished(() => postgres.close())
    const world = await createWorld({
      token,
      counts: { customers: 120, subscriptions: 40, plans: 5, orders: 3 },
    })
    const tokenFile = join(world.dataDir, 'token')
    await writeFile(tokenFile, token, { mode: 0o600 })
    const up = startCommand(world, ['up'], {
      env: {
        ...local,
        BILLING_TOKEN: '',
        BILLING_TOKEN_FILE: tokenFile,
        WAREHOUSE_URL: await postgres.createDatabase(),
        CONNECTOR_HASH_KEY: hashKey,
        CONNECTOR_METRICS_ADDRESS: '127.0.0.1:0',
        CONNECTOR_LOG_LEVEL: 'debug',
      },
    })
    await up.says('/metrics')
    const [, url = ''] = /(http:[^\s"]+)\/metrics/.exec(up.texts.stderr) ?? []
    const address = findServer(world.dataDir)?.address ?? ''
    const connection = await Connection.connect({ address })
    const client = new Client({ connection })
    const { taskQueue } = world
    let runs = 0
    const start = (workflow: string, input: object) =>
      client.workflow.execute(workflow, { workflowId: `run-${(runs += 1)}`, taskQueue, args: [input] })
    const exports = (input: ExportInput) => start('exportData', input)
    const imports = async (input: ImportInput) => (await startImport({ client, world, input })).result()

    // Exports: to everywhere, what changed, again, hashed, cut short, one whose token is refused and one that may not read.
    await exports({ to: ['csv', 'parquet', 'duckdb', 'postgres'] })
    await exports({ to: ['csv', 'postgres'], mode: 'incremental' })
    await start('publishRun', { run: 'run-1', to: ['csv', 'postgres'] })
    await exports({ resources: ['customers'], hash: ['customers.email'], exclude: ['customers.tax_id'] })
    await exports({ resources: ['customers'], maxPages: 1 })
    world.sandbox.control.adjust({ tokens: [renewed] })
    const refused = exports({ resources: ['customers'] })
    await up.says('waiting for a new token')
    await writeFile(tokenFile, renewed)
    await refused
    world.sandbox.control.setFaults({ faults: [{ kind: 'error', status: 403 }] })
    await expect(exports({ resources: ['customers'] })).rejects.toThrow('failed')
    world.sandbox.control.setFaults({ faults: [] })

    // A recovery: reads who needs attention, resumes, looks.
    const recovered = (await start('recoverSubscriptions', {
      approval: false,
      verifyAfter: '30ms',
      firstWait: '50ms',
    })) as { counts: { done: number } }
    expect(recovered.counts.done).toBeGreaterThan(0)

    // Imports: refused in words that repeat what was sent, lost, looked up, parked, checked only.
    const who = personalOf(world)
    const email = who.find((text) => text.includes('@') && text.length > 12) ?? ''
    const name = who.find((text) => /^\p{L}+ \p{L}+ /u.test(text)) ?? ''
    world.sandbox.control.setFaults({
      faults: [
        {
          kind: 'refuse',
          answer: { name: [`${name} (${email}) is taken.`] },
          to: 5,
          on: 'POST /retentions/',
        },
        { kind: 'reset', from: 8, to: 10, on: 'POST' },
        { kind: 'refuse', answer: { email: [`${email} is taken.`] }, to: 1, on: 'PATCH' },
      ],
    })
    const retentions = await putFile(world, retentionsCsv(30, { mark: name }), 'retentions.csv')
    await imports({ kind: 'retentions', file: retentions, dryRun: true, ...quick })
    const imported = await imports({ kind: 'retentions', file: retentions, canary: 0, ...quick })
    expect(imported.counts.rejected).toBe(5)
    const addons = await putFile(world, addonsCsv(20).replaceAll(',x,', `,${email},`), 'addons.csv')
    expect(
      (await imports({ kind: 'addons', file: addons, canary: 0, ...quick })).counts.done,
    ).toBeGreaterThan(5)
    const contacts = [...world.sandbox.control.records({ resource: 'customers' })]
      .flatMap((text) => (JSON.parse(text) as { contacts: { id: string }[] }).contacts)
      .map(({ id }) => id)
      .slice(0, 5)
    const contactsCsv = ['id,name,email', ...contacts.map((id) => `${id},${name},${email}`), ''].join('\n')
    const contactsFile = await putFile(world, contactsCsv, 'contacts.csv')
    await imports({ kind: 'update-contacts', file: contactsFile, canary: 0, ...quick })
    await refuseEverySort({ world, email, name, start, imports })
    const orders = await putFile(
      world,
      ordersCsv(world.sandbox.control.ids({ resource: 'orders' })),
      'orders.csv',
    )
    const deleting = await startImport({
      client,
      world,
      input: { kind: 'delete-orders', file: orders, ...quick },
    })
    await until(async () => {
      const { waitingFor } = await deleting.query<{ waitingFor?: object }>('status')
      return waitingFor !== undefined
    })
    await deleting.executeUpdate('approve', { args: [{ by: 'ops', why: 'asked for', count: 3 }] })
    await deleting.result()

    const metrics = Buffer.from(await (await fetch(`${url}/metrics`)).text())
    await connection.close()
    up.child.kill('SIGTERM')
    expect((await up.ended).code).toBe(0)

    const temporal = await filesUnder(world.dataDir, (path) => path.includes('temporal.db'))
    const reports = await filesUnder(
      world.dataDir,
      (path) =>
        /\.(json|html)$/.test(path) &&
        /exports|imports|recoveries/.test(path) &&
        // The run's own files: what was handed in, what is wrong with it, and what a repair of the state reads.
        !/\/input\/|\/check\.json$|\/checkpoint\.json$/.test(path),
    )
    const logs = [{ what: 'the log', bytes: Buffer.from(up.texts.stderr + up.texts.stdout) }]
    const told = [...temporal, ...reports, ...logs, { what: 'the metrics', bytes: metrics }]
    expect(reports.length).toBeGreaterThan(15)

    // The search finds what is there: addresses and runs in Temporal, people in the data.
    expect(found(temporal, [world.sandbox.url, 'run-1']).length).toBeGreaterThan(1)
    expect(found(logs, ['run-1', 'customers'])).toHaveLength(2)
    const rows = await filesUnder(world.dataDir, (path) => /customers\.csv$|results\.csv$/.test(path))
    expect(found(rows, who).length).toBeGreaterThan(100)
    const checks = await filesUnder(world.dataDir, (path) => path.endsWith('/check.json'))
    expect(found(checks, [email]).length).toBeGreaterThan(3)
    expect(found(await filesUnder(world.dataDir, (path) => path.includes('state.db')), [email])).not.toEqual(
      [],
    )

    const secrets = [token, renewed, password, encodeURIComponent(password), hashKey]
    const everything = await filesUnder(world.dataDir, (path) => path !== tokenFile)
    expect(found([...told, ...everything], secrets)).toEqual([])
    expect(found(told, who)).toEqual([])
  },
)

/** Refusals, each with somebody's data in it: cells, headers, lookups, mappings, ids, and replies. */
async function refuseEverySort(of: {
  world: World
  email: string
  name: string
  start: (workflow: string, input: object) => Promise<unknown>
  imports: (input: ImportInput) => Promise<unknown>
}): Promise<void> {
  const { world, email, name, start, imports } = of
  const refused = async (input: Partial<ImportInput>, text: string, place: string) => {
    const file = await putFile(world, text, `refused-${(files += 1)}.csv`)
    const running = imports({ kind: 'update-contacts', file, canary: 0, ...quick, ...input })
    const error = (await running.catch((cause: unknown) => cause)) as { cause?: Error }
    expect(error.cause?.message).toContain(place)
  }
  let files = 0
  await refused({}, `id,email\ncon_1,${email} ${name}\n`, 'row 2, email: is not a valid email address')
  await refused({}, `id,invoicing\ncon_1,${email}\n`, 'row 2, invoicing: ')
  await refused({}, `id,email\ncon_1,${email},${name}\n`, 'row 2: ')
  await refused({}, `${name},${email}\ncon_2,x@example.com\n`, 'row 1, column 1: ')
  const retention = { kind: 'retentions' } as const
  await refused(
    retention,
    `supplier,document,number,date,lines\ns,7,1,2026-03-01,"[{""${email}"":1}]"\n`,
    'lines',
  )
  await putFile(world, `theirs,ours\n${email}x,sup_1\n`, 'suppliers.csv')
  const lookups = await putFile(world, '{"lookups": {"supplier": "suppliers.csv"}}', 'lookups.json')
  const looked = `supplier,document,number,date,lines.1.name\n${email},7,1,2026-03-01,x\n`
  await refused({ ...retention, mapping: lookups }, looked, 'row 2, supplier: is not in the lookup file')
  await putFile(world, `${email},sup_1\n${email},sup_2\n`, 'suppliers.csv')
  await refused({ ...retention, mapping: lookups }, looked, 'suppliers.csv, row 2: ')
  const mapping = await putFile(world, JSON.stringify({ columns: { [email]: 5 } }), 'wrong.json')
  await refused({ mapping }, 'id,email\ncon_1,x@example.com\n', 'wrong.json')
  const ids = await putFile(world, `id\n${email}\n`, 'ids.csv')
  await expect(start('fetchDocuments', { documents: 'creditnotes', file: ids })).rejects.toThrow(
    'Workflow execution failed',
  )
  // The service shuts a row out, in words that repeat it.
  world.sandbox.control.setFaults({
    faults: [{ kind: 'refuse', status: 403, answer: { detail: `${email} may not.` }, on: 'PATCH' }],
  })
  const shutOut = await putFile(world, `id,email\ncon_1,${email}\n`, 'shut-out.csv')
  await imports({ kind: 'update-contacts', file: shutOut, canary: 0, ...quick }).catch(() => undefined)
  world.sandbox.control.setFaults({ faults: [] })
  const skipped = await putFile(world, `id,email\n${email},${email} ${name}\n`, 'skipped.csv')
  await imports({ kind: 'update-contacts', file: skipped, onInvalid: 'skip', canary: 0, ...quick })
}

test('a worker warns of secrets that others on the machine can read, and how to fix it', async () => {
  const world = await createWorld()
  const file = join(world.dataDir, 'token')
  await writeFile(file, world.sandbox.token)
  await chmod(file, 0o640)
  const env = { BILLING_TOKEN: '', BILLING_TOKEN_FILE: file }
  const worker = startCommand(world, ['worker'], { env })
  await worker.says('listening')
  worker.child.kill('SIGTERM')
  const { code, stderr } = await worker.ended
  expect(code).toBe(0)
  expect(stderr).toMatch(/"warn".*Other users of this machine can read or change .*token\. .*chmod go-rwx /)
})
