import type { Ports } from './start-process.ts'

export interface StartDevServer {
  /** The server's database is `temporal.db` in it; its lock, note and log are in `dev-server/`. */
  dataDir: string
  /** Asked for only when a server has to be started. */
  binary: () => Promise<string>
  /** Default: free ones, others when another process takes them first. */
  ports?: Ports | undefined
  /** Default: true. */
  ui?: boolean
  /** How free ports are found. */
  choosePorts?: () => Promise<Ports>
}

/** Where a server's files are. */
export interface Place {
  folder: string
  database: string
}
