// npm run bench -- peers [--customers 50000] [--moving 10000]
//
// Exports the same customers with the connector, dlt, a source on Airbyte's CDK and a bare loop, each as a whole
// process against the same sandbox: first a quiet list, for speed, CPU and memory; then a list in which one customer
// is deleted, one inserted and one updated at each request, for lost and doubled records and changed values.
import { parse } from 'csv-parse/sync'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { glob, mkdtemp, readFile, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { askControl, connector, readOptions, show, startService } from './world.ts'

const run = promisify(execFile)
const values = readOptions(import.meta.filename, {
  customers: { type: 'string', default: '50000' },
  moving: { type: 'string', default: '10000' },
})
const here = (name: string) => join(import.meta.dirname, name)
const folder = await mkdtemp(join(tmpdir(), 'peers-'))
await using closing = new AsyncDisposableStack()
closing.defer(() => rm(folder, { recursive: true }))

const python = await environment()

/** A record as an export has it; the values as texts, null where the export has no value. */
type Exported = Readonly<Record<string, string | null>>

interface Contestant {
  name: string
  command(url: string, out: string): string[]
  /** The exported customers. */
  records(out: string, stdout: string): Promise<Exported[]>
}

const contestants: Contestant[] = [
  {
    name: 'connector',
    command: () => [connector, 'export', 'customers', '--local', '--json'],
    records: (out) => readCsv(join(out, 'exports/customers/latest/customers.csv'), 'aggregations_sales'),
  },
  {
    name: 'bare loop',
    command: (url, out) => [process.execPath, here('bare-loop.ts'), url, out],
    records: (out) => readCsv(join(out, 'customers.csv'), 'aggregations_sales'),
  },
  {
    name: 'dlt',
    command: (url, out) => [python, here('peers/dlt_customers.py'), url, out],
    async records(out) {
      const files = await Array.fromAsync(glob(join(out, 'out/export/customers/*.csv')))
      const parts = await Promise.all(files.map((file) => readCsv(file, 'aggregations__sales')))
      return parts.flat()
    },
  },
  {
    name: 'Airbyte CDK',
    command: (url, out) => [python, here('peers/airbyte_customers.py'), url, out],
    records: async (_, stdout) => readMessages(await readFile(stdout, 'utf8')),
  },
]

/** An environment with the peers of requirements.txt, made once. */
async function environment(): Promise<string> {
  const wanted = here('peers/requirements.txt')
  const hash = createHash('sha256')
    .update(await readFile(wanted))
    .digest('hex')
    .slice(0, 12)
  const at = join(homedir(), '.cache', 'connector', `peers-${hash}`)
  const installed = join(at, 'bin', 'python')
  if (existsSync(join(at, 'bin', 'dlt'))) return installed
  console.error(`Installing ${(await readFile(wanted, 'utf8')).trim().replaceAll('\n', ' and ')} (once) ...`)
  await run('python3', ['-m', 'venv', at])
  await run(installed, ['-m', 'pip', 'install', '-q', '-r', wanted])
  return installed
}

/** The columns whose values are compared; `sales` is nested, so each tool gives it a name of its own. */
const compared = ['reference', 'phone', 'zip_code', 'manager', 'address', 'sales'] as const

async function readCsv(file: string, sales: string): Promise<Exported[]> {
  const rows = parse<Record<string, string | null>>(await readFile(file, 'utf8'), {
    columns: true,
    // An empty cell is null unless it is quoted.
    cast: (value, { quoting }) => (value === '' && !quoting ? null : value),
  })
  return rows.map((row) => ({ ...row, sales: row[sales] ?? null }))
}

function readMessages(text: string): Exported[] {
  return text.split('\n').flatMap((line) => {
    if (!line.startsWith('{"type":"RECORD"')) return []
    // The digits as they stand in the message.
    const digits = /"sales":([-\d.eE+]+)/.exec(line)?.[1] ?? null
    const { record } = JSON.parse(line) as { record: { data: Record<string, string | null> } }
    return [{ ...record.data, sales: digits }]
  })
}

interface Cost {
  seconds: number
  cpuSeconds: number
  peakMb: number
}

async function exportWith(contestant: Contestant, url: string): Promise<Cost & { records: Exported[] }> {
  const out = await mkdtemp(join(folder, 'out-'))
  const stdout = join(out, 'stdout')
  const command = contestant.command(url, out)
  const { stdout: measured } = await run(python, [here('peers/measure.py'), stdout, ...command], {
    env: {
      ...process.env,
      BILLING_BASE_URL: url,
      BILLING_TOKEN: 'bench',
      BILLING_WORKSPACE: 'acc_bench',
      BILLING_REQUESTS_PER_SECOND: '1000',
      CONNECTOR_DATA_DIR: out,
      TEMPORAL_ADDRESS: '',
      DATA_WRITER__DISABLE_COMPRESSION: 'true',
      RUNTIME__DLTHUB_TELEMETRY: 'false',
      DO_NOT_TRACK: '1',
    },
    maxBuffer: 1 << 26,
  })
  const { code, ...cost } = JSON.parse(measured) as Cost & { code: number }
  if (code !== 0) throw new Error(`${contestant.name} ended with ${code}: ${await readFile(stdout, 'utf8')}`)
  const records = await contestant.records(out, stdout)
  await rm(out, { recursive: true })
  return { ...cost, records }
}

/** Starts a service with so many customers, which ends with the stack. */
const serve = (ending: AsyncDisposableStack, customers: string) =>
  startService(ending, { folder, counts: { customers: Number(customers) }, audit: 'none' })

console.log(`\nA quiet list of ${values.customers} customers, no latency:`)
{
  await using ending = new AsyncDisposableStack()
  const url = await serve(ending, values.customers)
  for (const contestant of contestants) {
    const { records, seconds, cpuSeconds, peakMb } = await exportWith(contestant, url)
    const count = records.length
    if (count !== Number(values.customers)) throw new Error(`${contestant.name} exported ${count}`)
    show(contestant.name, {
      s: seconds,
      'rows/s': Math.round(count / seconds),
      'µs CPU a row': Math.round((1e6 * cpuSeconds) / count),
      MB: Math.round(peakMb),
    })
  }
}

/** Values that are easily changed on the way. */
const delicate = {
  reference: '00012345',
  phone: '+56912345678',
  zip_code: '0075',
  manager: '',
  address: null,
  sales: '12345678901234567.89',
} as const

console.log(`\nA list of ${values.moving} customers; each request deletes, inserts and updates one:`)
for (const contestant of contestants) {
  await using ending = new AsyncDisposableStack()
  const url = await serve(ending, values.moving)
  const { sales, ...plain } = delicate
  // As text, because a number in JavaScript would lose its digits here already.
  const fields = JSON.stringify({ name: 'Delicate', ...plain }).replace(
    /}$/,
    `,"status":"active","contacts":[],"aggregations":{"sales":${sales},"balance":0.10}}`,
  )
  const [id] = await askControl(url, 'insert', `{"resource":"customers","fields":${fields}}`)
  const [since] = await askControl(url, 'mark')
  const perRequest = { deletes: 1, inserts: 1, updates: 1 }
  await askControl(url, 'setDrift', { drift: { customers: { perRequest } } })
  const { records } = await exportWith(contestant, url)
  const [until] = await askControl(url, 'mark')
  const [throughout] = (await askControl(url, 'ids', { resource: 'customers', since, until })) as [string[]]
  const times = new Map<string, number>()
  for (const { id: one } of records) times.set(String(one), (times.get(String(one)) ?? 0) + 1)
  const lost = throughout.filter((one) => !times.has(one)).length
  const twice = [...times.values()].filter((count) => count > 1).length
  const one = records.find((record) => record['id'] === id)
  const changed = compared.filter((name) => (one?.[name] ?? null) !== delicate[name])
  const changes = changed.map((name) => `${name} (${JSON.stringify(one?.[name])})`).join(', ')
  show(contestant.name, {
    records: records.length,
    lost,
    twice,
    changed: one === undefined ? 'the delicate record is lost, not' : changes || 'nothing',
  })
}
