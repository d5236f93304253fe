/** For people: why a connection failed. The system and OpenSSL say it in words of their own. */

const reasons: readonly (readonly [code: RegExp, why: string])[] = [
  [/^ECONNREFUSED$/, 'nothing listens there'],
  [/^ENOTFOUND$/, 'there is no host of that name'],
  [/^EAI_/, 'the name of the host could not be looked up'],
  [/^(EHOSTUNREACH|ENETUNREACH|ENETDOWN)$/, 'no network leads there'],
  [/^(EPROTO|ERR_SSL_)/, 'what answers there does not speak TLS as https needs it'],
  [/^CERT_HAS_EXPIRED$/, 'its certificate has expired'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'its certificate is for another host'],
  [
    /SELF_SIGNED|^UNABLE_TO_(VERIFY|GET_ISSUER)/,
    'this machine does not trust its certificate (NODE_EXTRA_CA_CERTS adds an authority)',
  ],
  [/^ECONNRESET$/, 'the connection was closed'],
  [/^HPE_/, 'what answers there does not speak HTTP'],
]

/** For example `nothing listens there (ECONNREFUSED 127.0.0.1:1)`. */
export function tellConnectionFailure(error: NodeJS.ErrnoException): string {
  const { code = '', message } = error
  const [, why] = reasons.find(([pattern]) => pattern.test(code)) ?? []
  if (why === undefined) return code === '' ? message : `${code}: ${message}`
  const { address, port, hostname } = error as { address?: string; port?: number; hostname?: string }
  const where = address === undefined ? hostname : `${address}:${port}`
  return `${why} (${where === undefined ? code : `${code} ${where}`})`
}
