import { delimiter } from 'node:path'
import { z } from 'zod'
import { notificationLevels } from '../../core/notifications/notification.ts'
import { readEnvironment, type EnvironmentSource } from './environment.ts'
import {
  address,
  bucketAddress,
  flag,
  headerValue,
  isConfidential,
  leveledAddresses,
  listenAddress,
  number,
  oneOf,
  path,
  pathList,
  payloadKeys,
  postgresAddress,
  text,
} from './kinds.ts'

/** The documentation of a variable; the metadata of its schema. */
const variable = z.strictObject({
  /** A sentence or more for docs/configuration.md. */
  meaning: z.string(),
  /** How its values are written. */
  form: z.string(),
  /** The value used if the variable is not set. */
  default: z.string().optional(),
  /** What applies if it is not set, if not a fixed text. */
  otherwise: z.string().optional(),
  /** Never printed. May also be set as a file path, in `<NAME>_FILE`. */
  secret: z.boolean().optional(),
})
export type Variable = z.infer<typeof variable>

/**
 * Every variable of the connector, described once: the source of parsing, types, messages and the docs page.
 */
export const variables = z.object({
  BILLING_BASE_URL: address.meta({
    meaning: 'The base URL of the billing service.',
    form: 'an https address without user, password or query',
  }),
  BILLING_TOKEN: headerValue.meta({
    meaning:
      'The API token of the service. In `.env` or a file, you can replace it while runs are in progress; other settings take effect when the worker restarts.',
    form: 'the API token',
    secret: true,
  }),
  BILLING_WORKSPACE: headerValue.meta({
    meaning: 'The account that every request acts on.',
    form: 'text like acc_1234',
  }),
  BILLING_TEST_MODE: flag.meta({
    meaning: 'Whether requests act on test data, which has its own files, schemas and task queues.',
    default: 'false',
  }),
  BILLING_ALLOW_HTTP: flag.meta({
    meaning:
      'Allows http to another machine in BILLING_BASE_URL, NOTIFY_URL and AWS_ENDPOINT_URL_S3. Tokens, notifications and exports then cross the network unencrypted.',
    default: 'false',
  }),
  BILLING_REQUESTS_PER_SECOND: number({ from: 0.01, to: 1000 }).meta({
    meaning:
      'The most requests per second of all runs of this process; with `CONNECTOR_STATE_URL`, of all workers, where the lowest value applies.',
    default: '10',
  }),
  BILLING_CONCURRENCY: number({ from: 1, to: 100, whole: true }).meta({
    meaning:
      'The most requests in flight; with `CONNECTOR_STATE_URL`, of all workers, with at least one each.',
    default: '4',
  }),
  BILLING_READ_LAG_SECONDS: number({ from: 0, to: 86_400 }).meta({
    meaning:
      'How long after its `created` a record may become visible in a list: a read covers records up to its start minus this time.',
    default: '60',
  }),
  BILLING_SETTLE_SECONDS: number({ from: 0, to: 86_400 }).meta({
    meaning:
      'How long to wait before looking up a change whose reply was lost: the request may still take effect.',
    default: '60',
  }),
  BILLING_TIMEOUT_SECONDS: number({ from: 0.1, to: 600 }).meta({
    meaning: 'The timeout of one request.',
    default: '30',
  }),
  CONNECTOR_DATA_DIR: path.meta({
    meaning:
      'The folder for exports, imports, reports and the ledger, of one worker process. With `CONNECTOR_STATE_URL`, it is scratch that may be lost.',
    form: 'a path',
    default: './data',
  }),
  CONNECTOR_STATE_URL: postgresAddress.optional().meta({
    meaning:
      'The PostgreSQL database that keeps the state of several workers. It needs `CONNECTOR_FILES_URL`. See deployment.md.',
    form: '`postgres://user:password@host/database`',
    otherwise: 'the state is `state.db` in the data folder',
    secret: true,
  }),
  CONNECTOR_OUT_DIRS: pathList.optional().meta({
    meaning: `Other folders that an export's \`out\` may name, separated by \`${delimiter}\`.`,
    form: 'paths',
    otherwise: 'only the data folder',
  }),
  CONNECTOR_FILES_URL: bucketAddress.optional().meta({
    meaning:
      'The bucket for exports to csv and parquet: any S3-compatible store with conditional writes. With `CONNECTOR_STATE_URL`, workers also share the files of runs there. See deployment.md.',
    form: '`s3://bucket/prefix`',
    otherwise: 'the data folder',
  }),
  CONNECTOR_HASH_KEY: text.optional().meta({
    meaning: 'The secret key for hashed columns (`--hash`). The same key gives the same hashes.',
    form: 'text, best a long random one',
    otherwise: 'nothing can be hashed',
    secret: true,
  }),
  CONNECTOR_METRICS_ADDRESS: listenAddress.optional().meta({
    meaning:
      'Where `worker` and `up` serve `/metrics` for Prometheus, `/healthz` and `/readyz`, without authentication.',
    form: 'a host and a port like `127.0.0.1:9464`',
    otherwise: 'not served',
  }),
  CONNECTOR_LOG_LEVEL: oneOf(['debug', 'info', 'warn', 'error']).meta({
    meaning: 'The log level of `worker` and `up`. `debug` has a line for every request.',
    default: 'info',
  }),
  WAREHOUSE_URL: postgresAddress.optional().meta({
    meaning: 'The PostgreSQL database of `--to postgres`.',
    form: '`postgres://user:password@host/database`',
    otherwise: '`--to postgres` is refused',
    secret: true,
  }),
  NOTIFY_URL: leveledAddresses(notificationLevels, 'decisions').optional().meta({
    meaning:
      'Channels to notify, separated by spaces, each with a level if it is not `decisions`, as in `all=https://...`. See schedules.md.',
    form: '`https://...`, `problems=https://...`',
    otherwise: 'nobody is notified',
    secret: true,
  }),
  CONNECTOR_UI_URL: address.optional().meta({
    meaning: 'The address of the Temporal UI, for links in notifications.',
    form: '`https://temporal.example.com`',
    otherwise: 'the UI of `up`, otherwise no links',
  }),
  CONNECTOR_PAYLOAD_KEY: text.pipe(payloadKeys).optional().meta({
    meaning:
      'The key that encrypts the data of worker and commands in Temporal. Several keys, one a line: the first encrypts, all decrypt. See deployment.md.',
    form: '32 bytes in base64, as from `openssl rand -base64 32`',
    otherwise: 'Temporal keeps plain JSON',
    secret: true,
  }),
  TEMPORAL_API_KEY: headerValue.optional().meta({
    meaning: 'The API key for Temporal Cloud. In a file, you can replace it at any time.',
    form: 'the API key',
    otherwise: 'none, or that of `TEMPORAL_PROFILE`',
    secret: true,
  }),
})

const unencrypted =
  'over unencrypted http; use https, or set BILLING_ALLOW_HTTP=true if you trust the network'

/** The variables with the rules between them. */
export const checkedVariables = variables
  .refine((all) => all.BILLING_ALLOW_HTTP || isConfidential(all.BILLING_BASE_URL), {
    path: ['BILLING_BASE_URL'],
    error: `would send the token ${unencrypted}`,
    when: ({ issues }) => isValid('BILLING_BASE_URL', issues),
  })
  .refine((all) => all.BILLING_ALLOW_HTTP || (all.NOTIFY_URL ?? []).every(({ url }) => isConfidential(url)), {
    path: ['NOTIFY_URL'],
    error: `would send notifications ${unencrypted}`,
    when: ({ issues }) => isValid('NOTIFY_URL', issues),
  })

const isValid = (name: VariableName, issues: readonly { path?: readonly PropertyKey[] | undefined }[]) =>
  !issues.some(({ path }) => path?.[0] === name)

export type VariableName = keyof typeof variables.shape

/** Name and documentation of each variable. */
export const described = Object.entries(variables.shape).map(([name, kind]): [string, Variable] => [
  name,
  variable.parse(kind.meta()),
])

/** The variables that may also be set as a file path, in `<NAME>_FILE`. */
export const inFiles = described.flatMap(([name, { secret }]) => (secret === true ? [name] : []))

/** A value in printable form: secrets hidden, addresses without any possible secret. */
export function shownText(variable: Variable, text: string): string {
  if (variable.secret) return 'not shown'
  return `"${text.replace(/\/\/[^/]*@/, '//...@').replace(/[?#].*$/, '?...')}"`
}

/** Variables that other programs read: listed for completeness, never read here. */
export const foreignVariables = {
  'TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_TLS, TEMPORAL_PROFILE, ...':
    "Temporal's own: the address of its server and the credentials. Also from `.env`.",
  'AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL_S3, AWS_SHARED_CREDENTIALS_FILE, ...':
    "The AWS SDK's own: credentials, region and endpoint of the bucket in `CONNECTOR_FILES_URL`. The first six (and AWS_ENDPOINT_URL) also from `.env`.",
  'HTTPS_PROXY, NO_PROXY':
    'The proxy between this machine and the service; not used for the loopback address. From the real environment only, not from `.env`.',
  NODE_EXTRA_CA_CERTS:
    'A file with additional certificate authorities, for a proxy that intercepts TLS. Node reads it when it starts, so from the real environment only.',
  INIT_CWD: "The caller's folder, set by npm: paths that are typed or set are relative to it.",
} as const

/** One setting in force, safe to print. */
export interface ListedSetting {
  name: string
  /** Quoted; `not shown` for a secret that is set; undefined if unset and without a default. */
  value: string | undefined
  /** Where it was set. */
  from: 'environment' | 'default' | (string & {})
  meaning: string
}

/** Every variable with its effective value, without secrets and without validation. */
export function listSettings(source: EnvironmentSource): ListedSetting[] {
  const environment = readEnvironment(source)
  return described.map(([name, variable]) => {
    const file = inFiles.includes(name) ? environment.get(`${name}_FILE`) : undefined
    const set = environment.get(name) ?? file
    const text = set?.text ?? variable.default
    const value = text === undefined ? variable.otherwise : shownText(variable, text)
    return { name, value, from: set?.from ?? 'default', meaning: variable.meaning }
  })
}

/** Renders docs/configuration.md. */
export function describeSettings(): string {
  const settings = described.map(
    ([name, variable]) =>
      `- ${namesOf(name)} (${variable.form}; ${defaultOf(variable)}): ${variable.meaning}`,
  )
  const foreign = Object.entries(foreignVariables).map(
    ([names, meaning]) => `- ${names.replace(/[A-Z][A-Z0-9_]{2,}/g, '`$&`')}: ${meaning}`,
  )
  return `# Configuration

Every setting is an environment variable. The file \`.env\` in the working directory is read too; the real environment takes precedence, and an empty variable counts as unset. In \`.env\`, quote values with a \`#\` or several lines. Paths in \`.env\` and defaults are relative to the working directory, those in the real environment to the caller's. \`<NAME>_FILE\` names a file that contains the value. \`connector check --all\` prints the settings in force, without secrets.

${settings.join('\n')}

Variables that other programs read:

${foreign.join('\n')}
`
}

const namesOf = (name: string) => (inFiles.includes(name) ? `\`${name}\` or \`${name}_FILE\`` : `\`${name}\``)

const defaultOf = ({ default: text, otherwise }: Variable) =>
  text !== undefined ? `default \`${text}\`` : otherwise === undefined ? 'required' : `default: ${otherwise}`
