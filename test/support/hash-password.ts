import { hashPassword, verifyPassword } from '../../src/platform.ts'

// Prints a hash of the password, and whether others are hashes of it: what one runtime makes, the next must know.
const [password = '', ...hashes] = process.argv.slice(2)
const verified = await Promise.all(hashes.map(hash => verifyPassword(password, hash)))
console.log(JSON.stringify({ hash: await hashPassword(password), verified }))
