import { readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { z } from 'zod'
import type { StatePlace } from '../../core/state/open.ts'
import {
  decodeText,
  type EnvironmentSource,
  invisible,
  oddLetter,
  parseEnvFile,
  placeOf,
  readEnvironment,
  SettingsError,
  type SetVariable,
} from './environment.ts'
import { fixedToken, tokenFromFile } from './rotating.ts'
import { checkedVariables, described, foreignVariables, inFiles, shownText, variables } from './variables.ts'
import { connector, shell } from '../../core/runs/view/shell.ts'
import { editDistance, nearestName } from '../../core/tables/nearest-name.ts'

type Environment = ReadonlyMap<string, SetVariable>

/** The settings of a process, read once at startup. Paths are absolute. */
export type Settings = ReturnType<typeof toSettings>

/**
 * Reads and checks all settings, from the environment, `.env` and secret files.
 * @throws {SettingsError} with every problem
 */
export function readSettings(source: EnvironmentSource): Settings {
  const { values, environment } = read(checkedVariables, source)
  return toSettings(values, environment)
}

/** Where data, state and warehouses are: enough for a command that needs neither the service nor a worker. */
export type Places = ReturnType<typeof toPlaces>

const placeNames = {
  CONNECTOR_DATA_DIR: true,
  CONNECTOR_STATE_URL: true,
  CONNECTOR_FILES_URL: true,
  WAREHOUSE_URL: true,
  BILLING_ALLOW_HTTP: true,
} as const

/** @throws {SettingsError} with CONNECTOR_STATE_URL, also without a workspace */
export function readPlaces(source: EnvironmentSource): Places {
  const { values, environment } = read(variables.pick(placeNames), source)
  const named = variables.pick({ BILLING_WORKSPACE: true, BILLING_TEST_MODE: true })
  // Only the schema of a state on PostgreSQL is named after them.
  const whose = values.CONNECTOR_STATE_URL === undefined ? undefined : read(named, source).values
  return toPlaces({ BILLING_WORKSPACE: '', BILLING_TEST_MODE: false, ...values, ...whose }, environment)
}

function read<Values>(schema: z.ZodType<Values>, source: EnvironmentSource) {
  const { environment, problems } = takeSecretFiles(readEnvironment(source))
  problems.push(...findSlips(environment), ...findMissingBucket(environment))
  const defaults = described.flatMap(([name, { default: text }]): [string, SetVariable][] =>
    text === undefined ? [] : [[name, { text, from: 'default', folder: source.cwd }]],
  )
  const parsed = schema.safeParse(Object.fromEntries([...defaults, ...environment]))
  problems.push(...toProblems(parsed.error?.issues ?? [], environment))
  if (!parsed.success || problems.length > 0) {
    const isMissing = parsed.error?.issues.some(({ path: [name] }) => name === 'BILLING_BASE_URL')
    const isNew = isMissing === true && !environment.has('BILLING_BASE_URL')
    const hint = `${connector`init`} asks for the settings and writes .env, which commands read in their folder.`
    throw new SettingsError(problems, isNew ? { hint } : {})
  }
  return { values: parsed.data, environment }
}

/** Adds the secrets that are in files of their own, `<NAME>_FILE`, and says what is wrong with those files. */
function takeSecretFiles(environment: Environment) {
  const taken = new Map(environment)
  const problems: string[] = []
  for (const name of inFiles) {
    const named = environment.get(`${name}_FILE`)
    if (named === undefined) continue
    if (environment.has(name)) {
      problems.push(`${name} and ${name}_FILE are both set; remove one.`)
      continue
    }
    const file = resolve(named.folder, named.text)
    const text = readText(file)
    if (text) taken.set(name, { text, from: file, folder: dirname(file) })
    else {
      const wrong = text === '' ? 'is empty' : 'cannot be read'
      problems.push(`${name}_FILE names ${file}, which ${wrong}; put the value in it and nothing else.`)
    }
  }
  return { environment: taken, problems }
}

function readText(file: string): string | undefined {
  try {
    return decodeText(readFileSync(file)).trim()
  } catch {
    return undefined
  }
}

/** Several machines may use a state on PostgreSQL, so the files of its runs must not be on one of them. */
function findMissingBucket(environment: Environment): string[] {
  if (!environment.has('CONNECTOR_STATE_URL') || environment.has('CONNECTOR_FILES_URL')) return []
  return [
    'CONNECTOR_STATE_URL is set, and CONNECTOR_FILES_URL is not: the files of a state on PostgreSQL are in a bucket. ' +
      'Set it to s3://bucket/prefix, or unset CONNECTOR_STATE_URL to keep state and files in the data folder.',
  ]
}

/** One sentence per invalid variable: its first issue causes the others. */
function toProblems(issues: readonly z.core.$ZodIssue[], environment: Environment): string[] {
  return described.flatMap(([name, variable]) => {
    const issue = issues.find(({ path }) => path[0] === name)
    if (issue === undefined) return []
    const set = environment.get(name)
    if (set !== undefined)
      return [`${name} (${shownText(variable, set.text)}) in ${placeOf(set)} ${issue.message}.`]
    // The problem of its file is already reported.
    if (environment.has(`${name}_FILE`)) return []
    const orFile = inFiles.includes(name) ? `, or ${name}_FILE to a file that contains it` : ''
    return [`${name} is not set; set it to ${variable.form}${orFile}.`]
  })
}

type PlaceNames = keyof typeof placeNames | 'BILLING_WORKSPACE' | 'BILLING_TEST_MODE'

function toPlaces(values: Pick<z.output<typeof variables>, PlaceNames>, environment: Environment) {
  const { CONNECTOR_STATE_URL: url, BILLING_WORKSPACE: workspace, BILLING_TEST_MODE: testMode } = values
  const dataDir = values.CONNECTOR_DATA_DIR
  const schema = `connector_${workspace}${testMode ? '_test' : ''}`
  /** The data folder, unless PostgreSQL keeps it. */
  const state: StatePlace = { folder: dataDir, ...(url !== undefined && { database: { url, schema } }) }
  return {
    dataDir,
    state,
    /** The bucket for published files; undefined for the data folder. */
    filesUrl: values.CONNECTOR_FILES_URL,
    s3: toS3(environment, values),
    warehouseUrl: values.WAREHOUSE_URL,
  }
}

function toSettings(values: z.output<typeof variables>, environment: Environment) {
  const { BILLING_WORKSPACE: workspace, BILLING_TEST_MODE: testMode } = values
  const fileOf = (name: string) => (environment.has(`${name}_FILE`) ? environment.get(name)?.from : undefined)
  return {
    billing: {
      baseUrl: values.BILLING_BASE_URL,
      token: toToken(environment, values.BILLING_TOKEN),
      workspace,
      testMode,
      requestsPerSecond: values.BILLING_REQUESTS_PER_SECOND,
      concurrency: values.BILLING_CONCURRENCY,
      timeoutSeconds: values.BILLING_TIMEOUT_SECONDS,
    },
    /** A list of twice as many records is read in ranges of at least this many; a range costs about 1.5 requests. */
    recordsPerRange: 1_000,
    // Whole, as a certificate has it.
    readLagMs: Math.ceil(values.BILLING_READ_LAG_SECONDS * 1000),
    settleSeconds: values.BILLING_SETTLE_SECONDS,
    ...toPlaces(values, environment),
    /** Folders besides the data folder that an export's `out` may be in. */
    outDirs: values.CONNECTOR_OUT_DIRS ?? [],
    taskQueue: `billing-${workspace}${testMode ? '-test' : ''}`,
    hashKey: values.CONNECTOR_HASH_KEY,
    /** Notification channels. Secrets. */
    channels: values.NOTIFY_URL ?? [],
    uiUrl: values.CONNECTOR_UI_URL,
    /** Encrypt Temporal's payloads: the first key encrypts, all decrypt. */
    payloadKeys: values.CONNECTOR_PAYLOAD_KEY ?? [],
    temporalApiKeyFile: fileOf('TEMPORAL_API_KEY'),
    metricsAddress: values.CONNECTOR_METRICS_ADDRESS,
    logLevel: values.CONNECTOR_LOG_LEVEL,
    /** The files that secrets were read from. */
    secretFiles: secretFilesOf(environment),
    /**
     * All set variables, `.env` included, for `loadClientConnectConfig({ overrideEnvVars })`. Contains
     * secrets.
     */
    environment: Object.fromEntries([...environment].map(([name, { text }]) => [name, text])),
  }
}

/** Where buckets are: the variables of the AWS SDK, handed over because it reads only the real environment. */
export type S3 = ReturnType<typeof toS3>

function toS3(environment: Environment, { BILLING_ALLOW_HTTP: allowHttp }: { BILLING_ALLOW_HTTP: boolean }) {
  const textOf = (name: string) => environment.get(name)?.text
  const accessKeyId = textOf('AWS_ACCESS_KEY_ID')
  const secretAccessKey = textOf('AWS_SECRET_ACCESS_KEY')
  const sessionToken = textOf('AWS_SESSION_TOKEN')
  const hasKey = accessKeyId !== undefined && secretAccessKey !== undefined
  return {
    allowHttp,
    endpoint: textOf('AWS_ENDPOINT_URL_S3') ?? textOf('AWS_ENDPOINT_URL'),
    region: textOf('AWS_REGION'),
    profile: textOf('AWS_PROFILE'),
    credentials: hasKey
      ? { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) }
      : undefined,
  }
}

/** A token in a file or in `.env` is read again when the service rejects it. */
function toToken(environment: Environment, token: string) {
  const file = environment.get('BILLING_TOKEN')?.from
  if (file === undefined || file === 'environment') return fixedToken(token)
  if (environment.has('BILLING_TOKEN_FILE')) return tokenFromFile({ file })
  return tokenFromFile({ file, find: (content) => parseEnvFile(file, content)['BILLING_TOKEN'] })
}

/** The variables of other programs that exist in no other case and with no letter less, as HTTPS_PROXY does. */
const foreignNames = Object.keys(foreignVariables)
  .flatMap((names) => names.split(', '))
  .filter((name) => /^(TEMPORAL|AWS)_/.test(name))

/**
 * Variables that are ours but for invisible letters, case, look-alikes or one letter, and those with one of our
 * prefixes and a name close to one of ours. They would be ignored without a word.
 */
function findSlips(environment: ReadonlyMap<string, SetVariable>): string[] {
  const ours = described.flatMap(([name]) => [name, ...(inFiles.includes(name) ? [`${name}_FILE`] : [])])
  const known = [...ours, ...foreignNames]
  return [...environment].flatMap(([name, set]) => {
    if (known.includes(name)) return []
    const meant = known.find((one) => isSlip(name, one)) ?? nearestOf(name, ours) ?? testModeOf(name, set)
    if (meant === undefined) return []
    return [`${name} in ${placeOf(set)}${oddLetter(name)} is not a setting; did you mean ${meant}?`]
  })
}

/** Whether a name is the other but for case, separators, foreign letters, or one letter more, less, other or swapped. */
function isSlip(name: string, known: string): boolean {
  const plain = name.toUpperCase().replaceAll(/[-.]/g, '_').replaceAll(new RegExp(invisible, 'g'), '')
  if (Math.abs(plain.length - known.length) > 1) return false
  const isAsLong = plain.length === known.length
  const from = isAsLong ? plain.replaceAll(/[^\0-\x7f]/g, (_, at: number) => known.charAt(at)) : plain
  const isSwapped = isAsLong && from.split('').toSorted().join() === known.split('').toSorted().join()
  return editDistance(from, known) <= (isSwapped ? 2 : 1)
}

/** Other names that people give the mode: ignored, they would let an import change what is live. */
function testModeOf(name: string, { from }: SetVariable): 'BILLING_TEST_MODE' | undefined {
  const bare = name.replace(/^(BILLING|CONNECTOR)_/, '')
  if (bare === name)
    return from !== 'environment' && /^TEST_?MODE$/.test(name) ? 'BILLING_TEST_MODE' : undefined
  return /^((TEST|LIVE|SANDBOX)(_?MODE)?|MODE)$/.test(bare) ? 'BILLING_TEST_MODE' : undefined
}

function nearestOf(name: string, ours: readonly string[]): string | undefined {
  const prefix = /^(BILLING|CONNECTOR)_/.exec(name)?.[0]
  if (prefix === undefined) return undefined
  const endings = ours.flatMap((one) => (one.startsWith(prefix) ? [one.slice(prefix.length)] : []))
  const nearest = nearestName(name.slice(prefix.length), endings)
  return nearest === undefined ? undefined : `${prefix}${nearest}`
}

/** The paths that the group or other users may access in the ways of `bits`; none on Windows, where modes say nothing. */
export const findExposed = (paths: readonly string[], bits: number): string[] =>
  process.platform === 'win32'
    ? []
    : paths.filter((path) => ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & bits) !== 0)

/** The files that secrets were read from: one each, or `.env`. */
function secretFilesOf(environment: ReadonlyMap<string, SetVariable>): string[] {
  const files = [...environment].flatMap(([name, { text, from, folder }]) => {
    if (name === 'TEMPORAL_TLS_CLIENT_KEY_PATH') return [resolve(folder, text)]
    return secrets.includes(name) && from !== 'environment' ? [from] : []
  })
  return [...new Set(files)]
}

/** Our secrets, and those of the variables of Temporal, AWS and OpenTelemetry. */
const secrets = [
  ...inFiles,
  'TEMPORAL_API_KEY',
  'TEMPORAL_TLS_CLIENT_KEY_DATA',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
]

/** Names the files with secrets that other users of the machine can read or change, and the fix; undefined for none. */
export function tellReadableSecrets({ secretFiles }: { secretFiles: readonly string[] }): string | undefined {
  const files = findExposed(secretFiles, 0o066)
  if (files.length === 0) return undefined
  return `Other users of this machine can read or change what holds a secret: ${files.join(', ')}. Fix it with \`${shell`chmod go-rwx ${files}`}\`.`
}
