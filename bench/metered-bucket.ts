import { existsSync } from 'node:fs'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { environmentOf, startGateway } from '../test/acceptance/bucket/gateway.ts'
import buildGateway, { versitygw } from '../test/acceptance/bucket/versitygw.ts'

interface Traffic {
  /** In ms since 1970. */
  at: number
  fetched: number
  kept: number
}

/** An object store on this machine. */
export async function startBucket() {
  await buildGateway()
  if (!existsSync(versitygw())) throw new Error('The object store is built with Go, which is not installed.')
  const gateway = await startGateway()
  return { ...gateway, environment: environmentOf(gateway.endpoint) }
}

/** One that says what was fetched from it and put into it, and when. Its proxy takes time of this process. */
export async function startMeteredBucket() {
  const gateway = await startBucket()
  const { hostname, port } = new URL(gateway.endpoint)
  const traffic: Traffic[] = []
  const proxy = createServer((client) => {
    const store = connect(Number(port), hostname)
    client.on('data', ({ length }) => traffic.push({ at: Date.now(), fetched: 0, kept: length }))
    store.on('data', ({ length }) => traffic.push({ at: Date.now(), fetched: length, kept: 0 }))
    for (const socket of [client, store]) socket.on('error', () => client.destroy())
    client.pipe(store).pipe(client)
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  return {
    environment: environmentOf(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`),
    /** Megabytes between two times, in ms since 1970. */
    between(from: number, to: number) {
      const during = traffic.filter(({ at }) => at >= from && at <= to)
      const megabytes = (of: 'fetched' | 'kept') => during.reduce((sum, one) => sum + one[of], 0) / 1e6
      return { fetched: megabytes('fetched'), kept: megabytes('kept') }
    },
    async close() {
      proxy.close()
      await gateway.close()
    },
  }
}
