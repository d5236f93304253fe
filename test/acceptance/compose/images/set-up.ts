import { startEngine } from '../engine.ts'
import { makeImages } from './make-images.ts'

/** The images that the tests of a run use; the first time takes half an hour, and later a minute. */
export default async function setup(): Promise<void> {
  const engine = await startEngine()
  try {
    await makeImages(engine)
  } finally {
    await engine.close()
  }
}
