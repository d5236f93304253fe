/** Marks what stands for a payload that is no JSON. */
export const unreadable = '__unreadable'

export const isUnreadable = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, unreadable)
