/** The placeholder of a payload that is not JSON. */
export const unreadable = '__unreadable'

export const isUnreadable = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, unreadable)
