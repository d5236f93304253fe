import { createRequire } from 'node:module'

/** The connector's version. */
export const { version } = createRequire(import.meta.url)('../package.json') as { version: string }
