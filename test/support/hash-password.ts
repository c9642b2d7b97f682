import { hashPassword, verifyPassword } from '../../src/base/platform.ts'

// Prints a hash of the password, and whether other hashes match it: runtimes must accept each
// other's.
const [password = '', ...hashes] = process.argv.slice(2)
const verified = await Promise.all(hashes.map(hash => verifyPassword(password, hash)))
console.log(JSON.stringify({ hash: await hashPassword(password), verified }))
