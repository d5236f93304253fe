import type { z } from 'zod'
import type { Receiver } from '../../core/notifications/notification.ts'
import { EnvFileError, readEnvironment, toPlain } from './environment.ts'
import type { EnvironmentSource, Given } from './environment.ts'
import { isSafeWithoutAllowance } from './kinds.ts'
import { secretFilesOf, type AllowedReaders } from './permissions.ts'
import { takeSecretFiles } from './secret-files.ts'
import { fixedToken, tokenFromFile } from './token.ts'
import type { Token } from './token.ts'
import { shownText, variables } from './variables.ts'
import type { Variable, VariableName } from './variables.ts'

/** What the process is told from outside: read once, at its start. Paths are absolute. */
export interface Settings {
  billing: {
    /** Without a trailing slash. */
    baseUrl: string
    token: Token
    workspace: string
    testMode: boolean
    requestsPerSecond: number
    concurrency: number
    timeoutSeconds: number
    workspaceHeader: string
    testModeHeader: string
  }
  readLagSeconds: number
  settleSeconds: number
  dataDir: string
  /** Folders besides the data folder that an export's `--out` may lie in. */
  outDirs: readonly string[]
  taskQueue: string
  hashKey?: string
  warehouseUrl?: string
  /** Who is told what people should know. Secrets. */
  receivers?: readonly Receiver[]
  uiUrl?: string
  temporalCliPath?: string
  /** Where metrics and health are served; nowhere where it is left out. */
  metricsAddress?: { host: string; port: number }
  log: { level: 'debug' | 'info' | 'warn' | 'error'; format?: 'json' | 'text' }
  /** Files that secrets were taken from, and who besides their owner may read them and the data folder. */
  secretFiles: readonly string[]
  allowReadableSecrets: AllowedReaders
  /** Everything given, `.env` included, for `loadClientConnectConfig({ overrideEnvVars })`. Holds secrets. */
  environment: Readonly<Record<string, string>>
}

/** Every variable that is wrong or missing, each in a sentence. */
export class SettingsError extends Error {
  override name = 'SettingsError' as const
  readonly exitCode = 2
  readonly hint = 'docs/configuration.md describes every variable.'
  readonly problems: readonly string[]

  constructor(problems: readonly string[], options?: ErrorOptions) {
    super(problems.join(' '), options)
    this.problems = problems
  }
}

/**
 * Reads and checks all settings, or throws one SettingsError that names everything wrong with them. Reads `.env`
 * and the token's file; asks nothing else.
 */
export function readSettings(source: EnvironmentSource): Settings {
  const problems: string[] = []
  const environment = takeSecretFiles({ environment: given(source), problems })
  const values = readValues({ environment, cwd: source.cwd, problems })
  const token = readToken({ environment, values, problems })
  checkAddress({ environment, values, problems })
  checkReceivers({ environment, values, problems })
  const { BILLING_BASE_URL: baseUrl, BILLING_WORKSPACE: workspace } = values
  if (problems.length > 0 || token === undefined || baseUrl === undefined || workspace === undefined) {
    throw new SettingsError(problems)
  }
  const secretFiles = secretFilesOf(environment)
  return toSettings({ values, token, baseUrl, workspace, secretFiles, environment: toPlain(environment) })
}

/** Where data and warehouses lie: all that a command needs which asks neither the service nor a worker. */
export function readPlaces(source: EnvironmentSource): Pick<Settings, 'dataDir' | 'warehouseUrl'> {
  const problems: string[] = []
  const names = ['CONNECTOR_DATA_DIR', 'WAREHOUSE_URL'] as const
  const values = readValues({ environment: given(source), cwd: source.cwd, problems, names })
  if (problems.length > 0) throw new SettingsError(problems)
  const { CONNECTOR_DATA_DIR: dataDir, WAREHOUSE_URL: warehouseUrl } = values
  return { dataDir, ...(warehouseUrl !== undefined && { warehouseUrl }) }
}

function given(source: EnvironmentSource) {
  try {
    return readEnvironment(source)
  } catch (error) {
    if (error instanceof EnvFileError) throw new SettingsError([error.message], { cause: error })
    throw error
  }
}

type WithDefault = {
  [Name in VariableName]: (typeof variables)[Name] extends { default: string } ? Name : never
}[VariableName]
type Value<Name extends VariableName> = Resolved<z.output<(typeof variables)[Name]['kind']>>
/** A path is known when the folder is that it was written in. */
type Resolved<V> = V extends (folder: string) => infer Path ? Path : V
type Values = { [Name in VariableName]: Name extends WithDefault ? Value<Name> : Value<Name> | undefined }

interface Reading {
  environment: ReadonlyMap<string, Given>
  problems: string[]
}

const allNames = Object.keys(variables) as VariableName[]

function readValues(reading: Reading & { cwd: string; names?: readonly VariableName[] }): Values {
  const { environment, cwd, problems, names = allNames } = reading
  const read = names.map((name) => {
    const variable: Variable = variables[name]
    const value = environment.get(name) ?? byDefault(variable, cwd)
    if (value === undefined) {
      if (variable.required) problems.push(`${name} is not set; give ${variable.form}.`)
      return [name, undefined]
    }
    const parsed = variable.kind.safeParse(value.text)
    if (parsed.success) {
      return [name, typeof parsed.data === 'function' ? parsed.data(value.folder) : parsed.data]
    }
    const wrong = `${name} (${shownText(variable, value.text)}) in ${placeOf(value)}`
    problems.push(`${wrong} ${parsed.error.issues[0]?.message}.`)
    return [name, undefined]
  })
  return Object.fromEntries(read) as Values
}

function byDefault(variable: Variable, cwd: string): Given | undefined {
  return variable.default === undefined
    ? undefined
    : { text: variable.default, from: 'environment', folder: cwd }
}

function placeOf({ from }: Given): string {
  return from === 'environment' ? 'the environment' : from
}

function readToken({ environment, values, problems }: Reading & { values: Values }): Token | undefined {
  const { BILLING_TOKEN: token, BILLING_TOKEN_FILE: file } = values
  if (environment.has('BILLING_TOKEN') && file !== undefined) {
    problems.push('BILLING_TOKEN and BILLING_TOKEN_FILE are both set; take one of them away.')
    return undefined
  }
  if (file !== undefined) {
    try {
      return tokenFromFile(file)
    } catch (error) {
      problems.push(`BILLING_TOKEN_FILE cannot be used: ${sentence(error)}`)
      return undefined
    }
  }
  if (!environment.has('BILLING_TOKEN')) {
    problems.push('BILLING_TOKEN is not set; give the API token, or its file in BILLING_TOKEN_FILE.')
  }
  return token === undefined ? undefined : fixedToken(token)
}

function sentence(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return message.endsWith('.') ? message : `${message}.`
}

function checkAddress({ environment, values, problems }: Reading & { values: Values }): void {
  const address = values.BILLING_BASE_URL
  if (address === undefined || values.BILLING_ALLOW_HTTP || isSafeWithoutAllowance(address)) return
  const place = environment.get('BILLING_BASE_URL')
  problems.push(
    `BILLING_BASE_URL ("${address}") in ${place === undefined ? 'the environment' : placeOf(place)} would send ` +
      'the token over http in the clear; use https, or set BILLING_ALLOW_HTTP=true where the network is trusted.',
  )
}

function checkReceivers({ environment, values, problems }: Reading & { values: Values }): void {
  const receivers = values.NOTIFY_URL ?? []
  if (values.BILLING_ALLOW_HTTP || receivers.every(({ url }) => isSafeWithoutAllowance(url))) return
  const place = environment.get('NOTIFY_URL')
  problems.push(
    `NOTIFY_URL (not shown) in ${place === undefined ? 'the environment' : placeOf(place)} would tell of runs over ` +
      'http in the clear; use https, or set BILLING_ALLOW_HTTP=true where the network is trusted.',
  )
}

interface Checked {
  values: Values
  token: Token
  baseUrl: string
  workspace: string
  secretFiles: string[]
  environment: Record<string, string>
}

function toSettings(checked: Checked): Settings {
  const { values, token, baseUrl, workspace, secretFiles, environment } = checked
  const testMode = values.BILLING_TEST_MODE
  return {
    billing: {
      baseUrl,
      token,
      workspace,
      testMode,
      requestsPerSecond: values.BILLING_REQUESTS_PER_SECOND,
      concurrency: values.BILLING_CONCURRENCY,
      timeoutSeconds: values.BILLING_TIMEOUT_SECONDS,
      workspaceHeader: values.BILLING_WORKSPACE_HEADER,
      testModeHeader: values.BILLING_TEST_MODE_HEADER,
    },
    readLagSeconds: values.BILLING_READ_LAG_SECONDS,
    settleSeconds: values.BILLING_SETTLE_SECONDS,
    dataDir: values.CONNECTOR_DATA_DIR,
    outDirs: values.CONNECTOR_OUT_DIRS ?? [],
    taskQueue: values.CONNECTOR_TASK_QUEUE ?? `billing-${workspace}${testMode ? '-test' : ''}`,
    ...(values.CONNECTOR_HASH_KEY === undefined ? {} : { hashKey: values.CONNECTOR_HASH_KEY }),
    ...(values.WAREHOUSE_URL === undefined ? {} : { warehouseUrl: values.WAREHOUSE_URL }),
    ...(values.NOTIFY_URL === undefined ? {} : { receivers: values.NOTIFY_URL }),
    ...(values.CONNECTOR_UI_URL === undefined ? {} : { uiUrl: values.CONNECTOR_UI_URL }),
    ...(values.TEMPORAL_CLI_PATH === undefined ? {} : { temporalCliPath: values.TEMPORAL_CLI_PATH }),
    ...(values.CONNECTOR_METRICS_ADDRESS && { metricsAddress: values.CONNECTOR_METRICS_ADDRESS }),
    log: {
      level: values.CONNECTOR_LOG_LEVEL,
      ...(values.CONNECTOR_LOG_FORMAT && { format: values.CONNECTOR_LOG_FORMAT }),
    },
    secretFiles,
    allowReadableSecrets: values.CONNECTOR_ALLOW_READABLE_SECRETS,
    environment,
  }
}
