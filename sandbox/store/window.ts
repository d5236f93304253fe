import type { Chance } from '../data/random.ts'
import type { OrderField } from './ordered-list.ts'
import type { StoredRecord } from './stored-record.ts'

/**
 * The records at indexes `from` to `to` of an ascending list, read forward or backward. With `chance`,
 * records with equal keys change places at each call, as in a database without a complete ordering.
 */
export function cutWindow(options: {
  records: readonly StoredRecord[]
  field: OrderField
  descending: boolean
  from: number
  to: number
  chance: Chance | undefined
}): StoredRecord[] {
  const { records, field, descending, chance } = options
  const end = Math.min(options.to, records.length)
  const first = descending ? records.length - end : options.from
  const last = descending ? records.length - options.from : end
  if (first >= last) return []
  const window =
    chance === undefined ? records.slice(first, last) : shuffled({ records, field, first, last, chance })
  return descending ? window.toReversed() : window
}

function shuffled(options: {
  records: readonly StoredRecord[]
  field: OrderField
  first: number
  last: number
  chance: Chance
}): StoredRecord[] {
  const { records, field, first, last, chance } = options
  const key = (place: number) => records[place]?.[field]
  let from = first
  let to = last
  // Ties that span a border are shuffled as a whole, so records cross the border.
  while (from > 0 && key(from - 1) === key(first)) from--
  while (to < records.length && key(to) === key(last - 1)) to++
  const wide = records.slice(from, to)
  for (let start = 0; start < wide.length;) {
    let end = start + 1
    while (end < wide.length && wide[end]?.[field] === wide[start]?.[field]) end++
    if (end - start > 1) chance.shuffle(wide, start, end)
    start = end
  }
  return wide.slice(first - from, last - from)
}
