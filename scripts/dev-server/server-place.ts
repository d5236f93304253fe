import type { Ports } from './start-process.ts'

export interface StartDevServer {
  /** Contains the server's database, `temporal.db`, and its lock, record and log in `dev-server/`. */
  dataDir: string
  /** Provides the CLI; called only if a server has to be started. */
  binary: () => Promise<string>
  /** Default: free ports. */
  ports?: Ports | undefined
  /** Default: true. */
  ui?: boolean
  /** Finds free ports. */
  choosePorts?: () => Promise<Ports>
  /** Called when the server's process runs, a second before it is ready. */
  onSpawned?: () => void
}

/** The paths of a server's files. */
export interface Place {
  folder: string
  database: string
}
