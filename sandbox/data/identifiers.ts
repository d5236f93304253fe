import { mix } from './random.ts'

/**
 * Text ids that do not follow the order of `created` and sort differently by bytes and by locale. They end
 * in the index, which makes them unique and lets one record reference another.
 */
export function textId(prefix: string, index: number): string {
  const bits = mix(prefix.length * 31 + prefix.charCodeAt(0), index)
  const scattered = (bits % 1_679_616).toString(36).padStart(4, '0')
  const cased = bits & 1 ? scattered.toUpperCase() : scattered
  return `${prefix}_${cased}${index.toString(36).padStart(5, '0')}`
}
