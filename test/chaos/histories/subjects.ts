import type { ImportKindName } from '../../../core/imports/kinds.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'

/** A file to import, and the service's own word about each of its rows. */
export interface Subject {
  csv: string
  /** By the value of this column a row of a report is recognised. */
  column: string
  values: string[]
  /** The ids under which the service has each value's change; more than one is a double. */
  made: () => Map<string, string[]>
}

export type SubjectName = Extract<
  ImportKindName,
  'retentions' | 'addons' | 'products' | 'update-contacts' | 'update-subscriptions' | 'delete-orders'
>

export const subjectNames: readonly SubjectName[] = [
  'retentions',
  'addons',
  'products',
  'update-contacts',
  'update-subscriptions',
  'delete-orders',
]

export function createSubject({
  name,
  sandbox,
  rows,
}: {
  name: SubjectName
  sandbox: Sandbox
  rows: number
}): Subject {
  const numbers = Array.from({ length: rows }, (_, index) => index + 1)
  const table = (head: string, lines: readonly string[]) => [head, ...lines, ''].join('\n')
  const records = (resource: 'retentions' | 'addons' | 'products' | 'customers') =>
    [...sandbox.control.records({ resource })].map((text) => JSON.parse(text) as Record<string, unknown>)
  const idsBy = (rows: readonly (readonly [value: unknown, id: unknown])[]) =>
    new Map(
      [...Map.groupBy(rows, ([value]) => String(value))].map(([value, same]) => [
        value,
        same.map(([, id]) => String(id)),
      ]),
    )
  const values = numbers.map(String)
  switch (name) {
    case 'retentions':
      return {
        csv: table(
          'supplier,document,number,date,total,lines.1.name,lines.1.amount,lines.1.quantity',
          numbers.map(
            (number) => `sup_${number % 3},${7 + (number % 3)},${number},2026-03-01,${number}.50,H,1.10,2`,
          ),
        ),
        column: 'number',
        values,
        made: () => idsBy(records('retentions').map(({ number, id }) => [number, id])),
      }
    case 'addons':
      return {
        csv: table(
          'name,description,currency,amount',
          numbers.map((number) => `${number},x,CLP,${number}.25`),
        ),
        column: 'name',
        values,
        made: () => idsBy(records('addons').map(({ name, id }) => [name, id])),
      }
    case 'products':
      return {
        csv: table(
          'name,unit_label',
          numbers.map((number) => `${number},mes`),
        ),
        column: 'name',
        values,
        made: () => idsBy(records('products').map(({ name, id }) => [name, id])),
      }
    case 'update-contacts': {
      type Contact = { id: string; phone: string | null }
      const contacts = () => records('customers').flatMap(({ contacts }) => contacts as Contact[])
      const ids = contacts()
        .slice(0, rows)
        .map(({ id }) => id)
      const phones = new Map(ids.map((id, at) => [id, `+569${10_000 + at}`]))
      return {
        csv: table(
          'id,phone',
          [...phones].map(([id, phone]) => `${id},${phone}`),
        ),
        column: 'id',
        values: ids,
        made: () =>
          idsBy(contacts().flatMap(({ id, phone }) => (phone === phones.get(id) ? [[id, id] as const] : []))),
      }
    }
    case 'update-subscriptions': {
      const ids = sandbox.control.ids({ resource: 'subscriptions' }).slice(0, rows).map(String)
      const notes = new Map(ids.flatMap((id, at) => (at % 2 === 0 ? [[id, `note ${at}`]] : [])))
      // A note twice is the same as once, a coupon is not: every one that was taken counts.
      const noted = () =>
        ids.flatMap((id) => {
          const note = sandbox.control.get({ resource: 'subscriptions', id })?.['note']
          return notes.has(id) && note === notes.get(id) ? [[id, id] as const] : []
        })
      const redeemed = () =>
        sandbox.control
          .effects()
          .flatMap(({ resource, effect, id }) =>
            resource === 'subscriptions' && effect === 'update' && !notes.has(String(id))
              ? [[id, id] as const]
              : [],
          )
      return {
        csv: table(
          'id,note,coupon',
          ids.map((id) => `${id},${notes.get(id) ?? ''},${notes.has(id) ? '' : 'cou_1'}`),
        ),
        column: 'id',
        values: ids,
        made: () => idsBy([...noted(), ...redeemed()]),
      }
    }
    default: {
      const ids = sandbox.control.ids({ resource: 'orders' }).slice(0, rows).map(String)
      return {
        csv: table('id', ids),
        column: 'id',
        values: ids,
        made: () => {
          const left = new Set(sandbox.control.ids({ resource: 'orders' }).map(String))
          return idsBy(ids.filter((id) => !left.has(id)).map((id) => [id, id]))
        },
      }
    }
  }
}
