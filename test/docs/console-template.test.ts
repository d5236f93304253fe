/** The console's configuration is judged by its text, by nginx's rule: the server whose name is the Host, else the default one. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

const template = readFileSync(new URL('../../docs/deployment/console.conf.template', import.meta.url), 'utf8')

function serversFor(hosts: string) {
  const text = template.replaceAll('${CONSOLE_HOSTS}', hosts)
  const blocks = text.split(/^server \{$/m).slice(1)
  return blocks.map((block) => ({
    isDefault: /^ {2}listen 8080 default_server;$/m.test(block),
    names: (/^ {2}server_name (.*);$/m.exec(block)?.[1] ?? '').split(/\s+/).filter(Boolean),
    isUi: block.includes('proxy_pass http://temporal-ui'),
    isClosed: /^ {2}return 444;$/m.test(block) && !block.includes('location'),
  }))
}

/** `Host` as the server compares it: in small letters, without the port. */
function serverOf(host: string, hosts = '') {
  const servers = serversFor(hosts)
  const name = host.toLowerCase().replace(/:\d+$/, '')
  const found =
    servers.find(({ names }) => names.includes(name)) ?? servers.find(({ isDefault }) => isDefault)
  return found?.isUi === true && !found.isClosed
    ? 'ui'
    : found?.isClosed === true && !found.isUi
      ? 'closed'
      : 'none'
}

describe('the console', () => {
  test.each(['127.0.0.1:8080', 'localhost:8080', 'LOCALHOST', '[::1]:8080'])('is opened as %s', (host) => {
    expect(serverOf(host)).toBe('ui')
  })

  test.each(['evil.example', 'evil.example:8080', '127.0.0.1.evil.example', '10.0.0.1', '_x', ''])(
    'gives no answer to %j, which a page of another site may have had resolved to this machine',
    (host) => {
      expect(serverOf(host)).toBe('closed')
      expect(serverOf(host, 'billing.example.com')).toBe('closed')
    },
  )

  test('is opened under the names of CONSOLE_HOSTS too, and those are names and no patterns', () => {
    expect(serverOf('billing.example.com', 'other.example.com billing.example.com')).toBe('ui')
    expect(
      serversFor('')
        .flatMap(({ names }) => names)
        .join(' '),
    ).not.toMatch(/[*~]/)
  })

  test('has one default server', () => {
    expect(serversFor('').filter(({ isDefault }) => isDefault)).toHaveLength(1)
  })
})
