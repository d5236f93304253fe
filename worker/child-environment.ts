/** Variables that any program may need: paths, language and time zone. */
const everyProgram = [
  'PATH',
  'HOME',
  'USER',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'TZ',
  'TMPDIR',
  'TEMP',
  'TMP',
  'XDG_CACHE_HOME',
  'XDG_CONFIG_HOME',
  'SystemRoot',
  'USERPROFILE',
  'LOCALAPPDATA',
  'APPDATA',
]

/**
 * The environment of a program that does not need our settings: an allowlist, so that no secret reaches downloaded code
 * or its log. `more` names further variables that the program needs.
 */
export function childEnvironment({
  env = process.env,
  more = [],
}: { env?: NodeJS.ProcessEnv; more?: readonly string[] } = {}): NodeJS.ProcessEnv {
  const names = new Set([...everyProgram, ...more])
  return Object.fromEntries(Object.entries(env).filter(([name]) => names.has(name)))
}

const anyCase = (name: string) => [name, name.toLowerCase()]

/** Proxy and certificate variables, for programs that download. */
export const networkVariables = [
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'ALL_PROXY'].flatMap(anyCase),
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
]
