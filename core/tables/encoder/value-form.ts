import { isRawNumber } from '../json-value.ts'

const longestForm = 24

/** What a value looks like, for people who may not see it: `text like 99/99/9999`. */
export function toForm(value: unknown): string {
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
