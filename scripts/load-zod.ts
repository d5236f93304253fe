import { registerHooks } from 'node:module'

/**
 * Loads zod before what uses it, without its messages in 60 languages: only English is used here, which zod also loads
 * by itself. To find and load the others takes a tenth of a short command's time and 3 MB.
 */
export async function loadZod(): Promise<void> {
  const hook = registerHooks({
    resolve: (specifier, context, next) =>
      specifier === '../locales/index.js'
        ? { url: 'data:text/javascript,', shortCircuit: true }
        : next(specifier, context),
  })
  await import('zod')
  // It makes every further search slower.
  hook.deregister()
}
