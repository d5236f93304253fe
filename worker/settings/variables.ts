import { delimiter } from 'node:path'
import type { z } from 'zod'
import { notificationLevels } from '../../core/notifications/notification.ts'
import {
  address,
  flag,
  headerName,
  headerValue,
  leveledAddresses,
  listenAddress,
  number,
  oneOf,
  path,
  pathList,
  text,
  urlOf,
  wholeNumber,
} from './kinds.ts'

/** One variable of the environment: the only place it is described. */
export interface Variable {
  /** What it is, as a sentence of the docs page. */
  meaning: string
  kind: z.ZodType<unknown, string>
  /** How a person would write its values. */
  form: string
  /** The text that stands for it where nothing is given. */
  default?: string
  /** What it is without a value, where that is no fixed text. */
  otherwise?: string
  required?: true
  /** Never printed. */
  secret?: true
}

export const variables = {
  BILLING_BASE_URL: {
    meaning: 'The base URL of the billing service.',
    kind: address,
    form: 'an https address without user, password or query',
    required: true,
  },
  BILLING_TOKEN: {
    meaning: 'The API token, as the service’s dashboard shows it. Set either this or BILLING_TOKEN_FILE.',
    otherwise: 'required, unless BILLING_TOKEN_FILE is set',
    kind: headerValue,
    form: 'text',
    secret: true,
  },
  BILLING_TOKEN_FILE: {
    meaning:
      'A file that contains the API token and nothing else. It is read again when the service answers 401, so you can replace the token while runs are in progress; they wait up to five minutes for it.',
    kind: path,
    form: 'a path',
    otherwise: 'required, unless BILLING_TOKEN is set',
  },
  BILLING_WORKSPACE: {
    meaning: 'The workspace (account) that every request acts on.',
    kind: headerValue,
    form: 'text like acc_1234',
    required: true,
  },
  BILLING_TEST_MODE: {
    meaning:
      'Whether requests act on test-mode data. Live and test data have separate files, schemas and task queues.',
    kind: flag,
    form: '`true` or `false`',
    default: 'false',
  },
  BILLING_ALLOW_HTTP: {
    meaning:
      'Allows http to another machine in BILLING_BASE_URL and NOTIFY_URL. The token and the notifications then cross the network unencrypted.',
    kind: flag,
    form: '`true` or `false`',
    default: 'false',
  },
  BILLING_REQUESTS_PER_SECOND: {
    meaning: 'The maximum number of requests per second of this process, for all its runs together.',
    kind: number({ from: 0.01, to: 1000, unit: 'requests a second' }),
    form: 'a number from 0.01 to 1000',
    default: '10',
  },
  BILLING_CONCURRENCY: {
    meaning: 'The maximum number of requests in flight.',
    kind: wholeNumber({ from: 1, to: 100, unit: 'requests' }),
    form: 'a whole number from 1 to 100',
    default: '4',
  },
  BILLING_READ_LAG_SECONDS: {
    meaning:
      'How long after its `created` a record may become visible in a list. A read covers records created up to its start minus this time.',
    kind: number({ from: 0, to: 86_400, unit: 'seconds' }),
    form: 'seconds from 0 to 86400',
    default: '60',
  },
  BILLING_SETTLE_SECONDS: {
    meaning:
      'How long to wait before looking up a change whose reply was lost: the request may still take effect.',
    kind: number({ from: 0, to: 86_400, unit: 'seconds' }),
    form: 'seconds from 0 to 86400',
    default: '60',
  },
  BILLING_TIMEOUT_SECONDS: {
    meaning: 'The timeout of one request.',
    kind: number({ from: 0.1, to: 600, unit: 'seconds' }),
    form: 'seconds from 0.1 to 600',
    default: '30',
  },
  BILLING_WORKSPACE_HEADER: {
    meaning: 'The header that names the workspace.',
    kind: headerName,
    form: 'a header name',
    default: 'x-simple-workspace',
  },
  BILLING_TEST_MODE_HEADER: {
    meaning: 'The header that asks for test-mode data.',
    kind: headerName,
    form: 'a header name',
    default: 'x-service-test-mode',
  },
  CONNECTOR_DATA_DIR: {
    meaning:
      'The folder for all durable data: exports, imports, reports, the ledger. One worker process per folder.',
    kind: path,
    form: 'a path',
    default: './data',
  },
  CONNECTOR_OUT_DIRS: {
    meaning: `Other folders that an export's \`--out\` may name, separated by \`${delimiter}\`.`,
    kind: pathList(delimiter),
    form: 'paths',
    otherwise: 'only the data folder',
  },
  CONNECTOR_HASH_KEY: {
    meaning: 'The secret key for hashed columns (`--hash`). The same key gives the same hashes.',
    kind: text,
    form: 'text, best a long random one',
    otherwise: 'nothing can be hashed',
    secret: true,
  },
  CONNECTOR_TASK_QUEUE: {
    meaning: 'The Temporal task queue that the worker serves and the command line starts runs on.',
    kind: text,
    form: 'text',
    otherwise: '`billing-<workspace>`, in test mode `billing-<workspace>-test`',
  },
  CONNECTOR_ALLOW_READABLE_SECRETS: {
    meaning:
      'Lets `worker` and `up` start even if the group of a file with a secret (`.env`, the token file, ...), or every user of the machine (`true`), can read it. `check` applies it to the data folder too.',
    kind: oneOf(['false', 'group', 'true']),
    form: '`false`, `group` or `true`',
    default: 'false',
  },
  CONNECTOR_METRICS_ADDRESS: {
    meaning:
      'Where `worker` and `up` serve `/metrics` for Prometheus, `/healthz` and `/readyz`, without authentication.',
    kind: listenAddress,
    form: 'a host and a port like `127.0.0.1:9464`',
    otherwise: 'not served',
  },
  CONNECTOR_LOG_FORMAT: {
    meaning: 'The log format of `worker` and `up`: one JSON document per line, or text for people.',
    kind: oneOf(['json', 'text']),
    form: '`json` or `text`',
    otherwise: '`text` on a terminal, otherwise `json`',
  },
  CONNECTOR_LOG_LEVEL: {
    meaning: 'The log level of `worker` and `up`. `debug` has a line for every request.',
    kind: oneOf(['debug', 'info', 'warn', 'error']),
    form: '`debug`, `info`, `warn` or `error`',
    default: 'info',
  },
  WAREHOUSE_URL: {
    meaning: 'The PostgreSQL database of `--to postgres`.',
    kind: urlOf(['postgres:', 'postgresql:']),
    form: '`postgres://user:password@host/database`',
    otherwise: '`--to postgres` is refused',
    secret: true,
  },
  NOTIFY_URL: {
    meaning:
      'Channels to notify when a run fails, is unproven, leaves parked rows, opens its circuit breaker or waits for an approval, or when a schedule misses a slot: addresses that accept a POST as Slack does, separated by spaces. Each may have a level, as in `all=https://...`: `problems`; `decisions` (the default), which adds what waits for a person; `all`, which adds runs that ended well. See schedules.md.',
    kind: leveledAddresses(notificationLevels, 'decisions'),
    form: '`https://...`, `problems=https://...`',
    otherwise: 'nobody is notified',
    secret: true,
  },
  CONNECTOR_UI_URL: {
    meaning: 'The address of the Temporal UI, for links in notifications.',
    kind: address,
    form: '`https://temporal.example.com`',
    otherwise: 'the UI of `up`, otherwise no links',
  },
  TEMPORAL_CLI_PATH: {
    meaning: 'The Temporal CLI binary, for the dev server of `up`, `demo` and `--local`.',
    kind: path,
    form: 'a path',
    otherwise: '`temporal` on PATH, otherwise downloaded, otherwise built once with Go',
  },
} as const satisfies Record<string, Variable>

export type VariableName = keyof typeof variables

/** A value as it may be printed: secrets not at all, addresses without what could be one. */
export function shownText(variable: Variable, text: string): string {
  if (variable.secret) return 'not shown'
  return `"${text.replace(/\/\/[^/]*@/, '//...@').replace(/[?#].*$/, '?...')}"`
}

/** Variables that other programs read: listed to complete the page, never read here. */
export const foreignVariables = {
  'TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS, TEMPORAL_PROFILE, ...':
    "Temporal's own: the address of its server and the credentials. Also from `.env`.",
  'HTTPS_PROXY, NO_PROXY':
    'The proxy between this machine and the service; not used for the loopback address. From the real environment only, not from `.env`.',
  NODE_EXTRA_CA_CERTS:
    'A file with additional certificate authorities, for a proxy that intercepts TLS. Node reads it when it starts, so from the real environment only.',
  INIT_CWD:
    "The caller's folder, set by npm: paths on the command line and in the real environment are relative to it.",
} as const
