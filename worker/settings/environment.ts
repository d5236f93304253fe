import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { SettingsError } from './errors.ts'
import { isSystemError } from '../../core/storage/system-errors.ts'
import { decodeText, parseEnvFile } from './env-file.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** A variable's text and where it was set. */
export interface Given {
  text: string
  /** The environment, a default, or the path of a file. */
  from: 'environment' | 'default' | (string & {})
  /** The folder to which its relative paths refer. */
  folder: string
}

export interface EnvironmentSource {
  /** The real environment; overrides the file. Its CONNECTOR_ENV_FILE names a file other than `.env`. */
  env: Environment
  /** Default: `.env` in `cwd`. A file named here must exist. */
  envFile?: string
  /** The folder that the process runs in. */
  cwd: string
}

/**
 * All variables that are set, in the real environment or in the `.env` file. An empty variable counts as
 * unset, so it does not hide the file's. Paths in the real environment are relative to the caller's folder
 * (INIT_CWD under npm), those in the file to the file's own folder: the ledger must not move with the folder
 * a command is called from.
 * @throws {SettingsError} the file cannot be read, or has a line that is no setting
 */
export function readEnvironment(source: EnvironmentSource): Map<string, Given> {
  const caller = source.env['INIT_CWD'] || source.cwd
  const chosen = source.env['CONNECTOR_ENV_FILE']?.trim()
  const named = source.envFile ?? (chosen ? resolve(caller, chosen) : undefined)
  const file = named ?? join(source.cwd, '.env')
  const written = readEnvFile({ file, required: named !== undefined })
  const fromFile = Object.entries(written).map(([name, text]) => given(name, text, file, join(file, '..')))
  const real = Object.entries(source.env).map(([name, text]) => given(name, text, 'environment', caller))
  return new Map([...fromFile, ...real].flat())
}

function given(name: string, text: string | undefined, from: string, folder: string): [string, Given][] {
  return text === undefined || text.trim() === '' ? [] : [[name, { text: text.trim(), from, folder }]]
}

function readEnvFile({ file, required }: { file: string; required: boolean }): Environment {
  const content = readText(file, { required })
  return content === undefined ? {} : parseEnvFile(file, content)
}

function readText(file: string, { required }: { required: boolean }): string | undefined {
  try {
    return decodeText(readFileSync(file))
  } catch (cause) {
    if (isSystemError(cause, 'ENOENT') && !required) return undefined
    const problem = `The settings file ${file} cannot be read: ${String(cause)}. Fix or remove it.`
    throw new SettingsError([problem], { cause })
  }
}

/** The merged environment as plain text, for other readers such as Temporal's `loadClientConnectConfig`. */
export function toPlain(environment: ReadonlyMap<string, Given>): Record<string, string> {
  return Object.fromEntries([...environment].map(([name, { text }]) => [name, text]))
}

/** Where a variable was set, for people. */
export const placeOf = ({ from }: Given): string => (from === 'environment' ? 'the environment' : from)
