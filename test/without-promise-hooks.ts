import v8 from 'node:v8'

// A worker in the test's own process would have the SDK record a stack for every promise of that process, the
// service's and the test's too, a fifth of their CPU, for a query that only people send.
v8.promiseHooks.createHook = () => () => undefined
