import type { ClientConfig } from 'pg'
import { WarehouseRefusedError } from '../errors.ts'

/** The address and login of a PostgreSQL server. The password is in `config` only. */
export interface Address {
  config: ClientConfig
  /** `host:port/database`, for people. */
  name: string
}

function isDecodable({ username, password, pathname }: URL): boolean {
  try {
    for (const part of [username, password, pathname]) decodeURIComponent(part)
    return true
  } catch {
    return false
  }
}

/**
 * Parses `postgres://user:password@host:port/database?sslmode=...`.
 * @throws {WarehouseRefusedError} without the address: a password may be anywhere in it
 */
export function parseAddress(url: string): Address {
  const parsed = URL.parse(url)
  if (parsed === null || !isDecodable(parsed)) {
    throw new WarehouseRefusedError(
      'The address of the warehouse (WAREHOUSE_URL) is not a URL. It has to be postgres://user:password@host:5432/database,' +
        ' with what is special in the password percent-encoded.',
    )
  }
  if (!/^postgres(ql)?:$/.test(parsed.protocol))
    throw new WarehouseRefusedError(
      `The address of the warehouse (WAREHOUSE_URL) has to begin with postgres://, not ${parsed.protocol}//.`,
    )
  const database = decodeURIComponent(parsed.pathname.slice(1))
  return {
    name: `${parsed.host || 'localhost'}/${database}`,
    config: {
      connectionString: url,
      application_name: 'billing-connector',
      connectionTimeoutMillis: 15_000,
      keepAlive: true,
      // Otherwise the system's two hours: a statement of minutes is silent, and networks drop connections that are.
      keepAliveInitialDelayMillis: 30_000,
    },
  }
}
