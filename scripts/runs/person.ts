import { userInfo } from 'node:os'

/** The user of this machine. */
export const personHere = (): string => userInfo().username
