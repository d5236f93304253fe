/** A worker that shares its data folder with others on this machine; its settings come from the environment. */
import { temporalPlace } from '../../../../scripts/session/temporal-place.ts'
import { processSettings } from '../../../../scripts/session/settings.ts'
import { startWorker } from '../../../../worker/start-worker.ts'

const settings = processSettings()
const worker = await startWorker({
  settings,
  temporal: temporalPlace(settings),
  standing: true,
  sharesFolder: true,
})
process.once('SIGTERM', () => void worker.stop())
worker.logger.info('listening')
await worker.ended
