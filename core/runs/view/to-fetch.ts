import { connector } from './shell.ts'
import type { NextStep } from './view.ts'

/** Of a run whose files several workers keep in their file store. */
export const toFetch = (run: string): NextStep => ({
  text: 'to have its files in the data folder of your machine, where the paths here begin',
  command: connector`run report ${run}`,
})
