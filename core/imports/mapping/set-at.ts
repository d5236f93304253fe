import { isRecord } from '../../billing/lossless-json.ts'
import { eachRow, type Step } from './field-target.ts'

/**
 * Sets the value at a path of a body; `item` replaces `eachRow`. List items that got no value remain holes
 * until `compactLists`.
 */
export function setAt(body: object, path: readonly Step[], item: number, value: unknown): void {
  let holder = body as Record<string | number, unknown>
  for (let index = 0; index < path.length; index++) {
    const step = path[index] as Step
    const key = step === eachRow ? item : step
    if (index === path.length - 1) holder[key] = value
    else {
      holder[key] ??= typeof path[index + 1] === 'string' ? {} : []
      holder = holder[key] as Record<string | number, unknown>
    }
  }
}

/** Removes the holes from the lists of a body. */
export function compactLists(body: Record<string, unknown>): void {
  for (const key in body) {
    const value = body[key]
    if (!Array.isArray(value)) continue
    // `filter` skips holes.
    const items: unknown[] = value.filter(() => true)
    body[key] = items
    for (const item of items) if (isRecord(item)) compactLists(item)
  }
}
