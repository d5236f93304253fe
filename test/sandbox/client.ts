import { afterEach } from 'vitest'
import type { SandboxOptions } from '../../sandbox/options.ts'
import { createSandbox, type Sandbox } from '../../sandbox/sandbox.ts'

// What comes over the wire may be anything; each test's expectations say what it has to be.
// oxlint-disable-next-line typescript/no-explicit-any
export type Loose = any

export interface Reply {
  status: number
  headers: Headers
  text: string
  json: Loose
}

export type Row = Record<string, Loose>

/** A sandbox for one test, ended after it, and the requests of a client that does all the interface asks for. */
export interface Client {
  sandbox: Sandbox
  request: (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Reply>
  get: (path: string) => Promise<Reply>
  /** The records of a page. */
  rows: (path: string) => Promise<Row[]>
  /** All ids of a list, read page after page. */
  walk: (path: string) => Promise<(string | number)[]>
}

const open: Sandbox[] = []
afterEach(async () => {
  for (const sandbox of open.splice(0)) await sandbox.close()
})

export async function start(options: SandboxOptions = {}): Promise<Client> {
  const sandbox = await createSandbox(options)
  open.push(sandbox)
  const request: Client['request'] = async (method, path, body, headers = {}) => {
    const response = await fetch(sandbox.url + path, {
      method,
      redirect: 'manual',
      headers: {
        authorization: `Token ${sandbox.token}`,
        'x-simple-workspace': sandbox.workspace,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const isJson = text !== '' && response.headers.get('content-type') === 'application/json'
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: isJson ? tryJson(text) : undefined,
    }
  }
  const get: Client['get'] = (path) => request('GET', path)
  const rows: Client['rows'] = async (path) => (await get(path)).json.results
  const walk: Client['walk'] = async (path) => {
    const ids: (string | number)[] = []
    for (let next: string | null = path; next !== null;) {
      const page: Reply = await get(next)
      ids.push(...page.json.results.map((row: Row) => row.id))
      next = page.json.next === null ? null : String(page.json.next).slice(sandbox.url.length)
    }
    return ids
  }
  return { sandbox, request, get, rows, walk }
}

function tryJson(text: string): Loose {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const retention = (number: number, more: Row = {}) => ({
  supplier: 'sup_1',
  document: 7,
  number,
  date: '2026-03-01',
  lines: [{ name: 'Honorarios', amount: 1500.5, quantity: 2 }],
  ...more,
})
