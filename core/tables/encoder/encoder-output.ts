import { addDrift, countField, noDrift, type Rows } from './encoded-rows.ts'
import type { EncoderOutput } from './compiled-row.ts'
import { isRawNumber } from '../json-value.ts'
import type { Table } from '../table.ts'

export function createOutput(tables: readonly Table[]): EncoderOutput {
  const gathered = tables.map((table) => [table.name, { text: '', rows: 0 }] as const)
  const byTable = new Map(gathered)
  const rejected = { text: '', rows: 0 }
  let drift = noDrift()
  const met = new Set<{ path: string; absent: readonly string[] }>()
  const takeRows = (rows: Rows) => {
    const taken = { ...rows }
    rows.text = ''
    rows.rows = 0
    return taken
  }
  return {
    rejected,
    rowsOf: (table) => byTable.get(table)!,
    countMisfit(path, value) {
      const known = drift.misfits[path]
      if (known === undefined) drift.misfits[path] = { count: 1, example: toForm(value) }
      else known.count += 1
    },
    countUnknown: (path) => countField(drift, path),
    watch(path, fields) {
      const object = { path, absent: fields }
      return (source) => {
        if (!met.has(object)) met.add(object)
        if (object.absent.length > 0)
          object.absent = object.absent.filter((field) => source[field] === undefined)
      }
    },
    orNothing(work) {
      const before = gathered.map(([, rows]) => ({ ...rows }))
      const driftBefore = drift
      drift = noDrift()
      try {
        work()
      } catch (error) {
        for (const [at, [, rows]] of gathered.entries()) Object.assign(rows, before[at])
        drift = driftBefore
        throw error
      }
      addDrift(driftBefore, drift)
      drift = driftBefore
    },
    take() {
      const taken = drift
      for (const { path, absent } of met) taken.absent[path] = [...absent]
      drift = noDrift()
      return {
        tables: gathered.map(([, rows]) => takeRows(rows)),
        rejected: takeRows(rejected),
        drift: taken,
      }
    },
  }
}

const longestForm = 24

/** What a value looks like, for people who may not see it: `text like 99/99/9999`. */
function toForm(value: unknown): string {
  if (typeof value === 'number' || isRawNumber(value)) return 'a number'
  if (typeof value === 'boolean') return 'true or false'
  if (Array.isArray(value)) return 'a list'
  if (typeof value !== 'string') return 'an object'
  if (value === '') return 'an empty text'
  const form = value
    .slice(0, longestForm)
    .replaceAll(/(?!\p{Lu})\p{L}/gu, 'a')
    .replaceAll(/\p{Lu}/gu, 'A')
    .replaceAll(/\p{Nd}/gu, '9')
    .replaceAll(/[^Aa9 +\-.,:;/_@#%()]/gu, '?')
  return `text like ${form}${value.length > longestForm ? '...' : ''}`
}
