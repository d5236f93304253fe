import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** A collection stops the process for some 0.1 s. */
const atMostEveryMs = 30_000
let collectedAt = -Infinity

/**
 * Gives the memory that a read has left as garbage back to the system, before DuckDB takes its own outside V8's heap: a
 * worker that has read 1,000,000 customers shrinks from 346 MB to 259 MB in 0.13 s (docs/benchmarks.md). V8 would keep
 * it, because the worker is never idle for long.
 */
export function collectGarbage(): void {
  const now = performance.now()
  if (now - collectedAt < atMostEveryMs) return
  collectedAt = now
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as NodeJS.GCFunction
  gc({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
