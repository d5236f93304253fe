import type { PostgresPool, PostgresPoolClient } from 'kysely'
import { Pool, type PoolClient, TypeOverrides, types } from 'pg'
import { readOnlyState } from '../errors.ts'
import { isConnectionLost, isConsequence, toPostgresError } from './postgres-errors.ts'

interface PoolOptions {
  url: string
  /** The store's name for people. */
  place: string
  max: number
  readOnly: boolean
}

/** A connection that is this long without an answer is given up; the server ends a statement after 30 s itself. */
const answerWithinMs = 45_000

/** A pool for kysely that translates errors, and closes a connection that no longer answers. */
export function createPool({ url, place, max, readOnly }: PoolOptions): PostgresPool {
  const pool = new Pool({
    connectionString: url,
    application_name: 'billing-connector',
    max,
    connectionTimeoutMillis: 10_000,
    query_timeout: answerWithinMs,
    // A claim should find its connection open.
    idleTimeoutMillis: 300_000,
    allowExitOnIdle: true,
    keepAlive: true,
    types: stateTypes,
  })
  // A lost connection also fails its query, which reports it, or is replaced before the next one.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return {
    options: pool.options,
    end: () => pool.end(),
    connect: async () => {
      try {
        return toClient({ client: await pool.connect(), place, readOnly })
      } catch (cause) {
        throw toPostgresError({ place, cause })
      }
    },
  }
}

function toClient({ client, place, readOnly }: { client: PoolClient; place: string; readOnly: boolean }) {
  let isLost = false
  let failure: unknown
  const query = async (text: string, parameters: readonly unknown[]) => {
    if (readOnly && !isReading(text)) throw readOnlyState({ place, cause: text })
    try {
      const result = await client.query(text, [...parameters])
      failure = undefined
      return result
    } catch (cause) {
      // After a failed statement, PostgreSQL says of the others only that the transaction has failed.
      failure = isConsequence(cause) ? failure : toPostgresError({ place, cause })
      isLost ||= isConnectionLost(failure)
      throw failure
    }
  }
  const release = (destroy = false) => client.release(destroy || isLost)
  return { query, release } as unknown as PostgresPoolClient
}

const isReading = (text: string) => /^\s*(select|begin|commit|rollback)\b/i.test(text)

/** 64-bit integers and sums arrive as text. */
const toNumber = (text: string): number => {
  const value = Number(text)
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER)
    throw new RangeError(`a number of the state is too large: ${text}`)
  return value
}

const stateTypes = new TypeOverrides()
stateTypes.setTypeParser(types.builtins.INT8, toNumber)
stateTypes.setTypeParser(types.builtins.NUMERIC, toNumber)
