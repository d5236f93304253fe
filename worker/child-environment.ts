/** What any program may need to run: where things are, and in which language and zone. */
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
 * The environment of a program that does not need our settings: an allow-list, so that no secret of ours or of
 * anybody else's reaches code that was downloaded, or its log. `more` names what this program needs besides.
 */
export function childEnvironment({
  env = process.env,
  more = [],
}: { env?: NodeJS.ProcessEnv; more?: readonly string[] } = {}): NodeJS.ProcessEnv {
  const names = new Set([...everyProgram, ...more])
  return Object.fromEntries(Object.entries(env).filter(([name]) => names.has(name)))
}

const anyCase = (name: string) => [name, name.toLowerCase()]

/** For programs that download: the way out of this machine. */
export const networkVariables = [
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'ALL_PROXY'].flatMap(anyCase),
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
]
